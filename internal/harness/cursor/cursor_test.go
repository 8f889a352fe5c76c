package cursor_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/harness/cursor"
	"github.com/contextd/contextd/internal/harness/harnesstest"
	"github.com/contextd/contextd/internal/harness/transcript"
)

var rewrite = flag.Bool("rewrite", false, "make the database anew from the rows")

const database = "testdata/state.vscdb"

func TestConformance(t *testing.T) {
	fixtures := harnesstest.Files(t, "testdata/*.in.json*")
	for name, data := range harnesstest.Files(t, database) {
		fixtures[name] = data
	}
	harnesstest.Run(t, harnesstest.Harness{Name: cursor.Name, Read: cursor.Read, Fixtures: fixtures})
}

// TestDatabase: the database says what its rows say as JSON.
func TestDatabase(t *testing.T) {
	exported, err := os.ReadFile("testdata/rows.in.json")
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		makeDatabase(t, exported)
	}
	data, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	fromDatabase, err := cursor.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	fromRows, err := cursor.Read(bytes.NewReader(exported))
	if err != nil {
		t.Fatal(err)
	}
	if len(fromRows.Sessions) != 3 || fromRows.Compactions != 1 {
		t.Errorf("%d chats with %d compactions, want 3 with 1", len(fromRows.Sessions), fromRows.Compactions)
	}
	if diff := cmp.Diff(fromRows.Sessions, fromDatabase.Sessions); diff != "" {
		t.Errorf("the database gives otherwise than its rows (-rows +database):\n%s", diff)
	}
}

func makeDatabase(t *testing.T, exported []byte) {
	t.Helper()
	var rows []struct {
		Key   string
		Value json.RawMessage
	}
	if err := json.Unmarshal(exported, &rows); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "state.vscdb")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)",
		"CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range rows {
		value := []byte(r.Value)
		var text string
		if json.Unmarshal(r.Value, &text) == nil && r.Value[0] == '"' {
			value = []byte(text)
		}
		if string(r.Value) == "null" {
			value = nil
		}
		if _, err := db.Exec("INSERT INTO cursorDiskKV VALUES (?, ?)", r.Key, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(database, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedDatabase: what is cut off or overwritten is an answer without a panic:
// a transcript with a warning, or that there is none.
func TestDamagedDatabase(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	data, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{16, 100, 4096, 5000, len(data) / 2, len(data) - 1} {
		overwritten := bytes.Clone(data)
		for i := n; i < min(n+600, len(data)); i++ {
			overwritten[i] = 0xA5
		}
		for name, in := range map[string][]byte{"cut off": data[:n], "overwritten": overwritten} {
			tr, err := cursor.Read(bytes.NewReader(in))
			var format *transcript.FormatError
			if err != nil && !errors.As(err, &format) {
				t.Errorf("%s at %d: %v", name, n, err)
			}
			harnesstest.Admitted(t, tr)
		}
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "contextd-cursor-*")); err != nil || len(left) > 0 {
		t.Errorf("copies of databases are left behind: %q, %v", left, err)
	}
}

func FuzzDatabase(f *testing.F) {
	data, err := os.ReadFile(database)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		if !bytes.HasPrefix(data, []byte("SQLite format 3\x00")) {
			data = append([]byte("SQLite format 3\x00"), data...)
		}
		tr, err := cursor.Read(bytes.NewReader(data))
		var format *transcript.FormatError
		if err != nil && !errors.As(err, &format) {
			t.Fatal(err)
		}
		harnesstest.Admitted(t, tr)
	})
}
