package cursor_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/harness/cursor"
	"github.com/contextd/contextd/internal/harness/cursor/sqlite"
	"github.com/contextd/contextd/internal/harness/harnesstest"
	"github.com/contextd/contextd/internal/harness/transcript"
)

const database = "testdata/state.vscdb" // testdata/make.py makes it

// read reads a JSON file, or a database with its warnings.
func read(ctx context.Context, data []byte) (tr transcript.Transcript, warnings []string, err error) {
	if !bytes.HasPrefix(data, []byte(sqlite.Magic)) {
		tr, err = cursor.Harness.Read(bytes.NewReader(data))
		return tr, nil, err
	}
	db := cursor.Harness.Database.Open(ctx, bytes.NewReader(data), int64(len(data)), nil, func(w string) { warnings = append(warnings, w) })
	tr, err = cursor.Harness.Read(db)
	return tr, warnings, errors.Join(err, db.Close())
}

func TestConformance(t *testing.T) {
	fixtures := harnesstest.Files(t, "testdata/*.in.json*")
	for name, data := range harnesstest.Files(t, database) {
		fixtures[name] = data
	}
	harnesstest.Run(t, harnesstest.Subject{Fixtures: fixtures, Harness: transcript.Harness{Name: cursor.Name, Read: func(in io.Reader) (transcript.Transcript, error) {
		data, err := io.ReadAll(in)
		if err != nil {
			return transcript.Transcript{}, err
		}
		tr, _, err := read(t.Context(), data)
		return tr, err
	}}})
}

// TestDatabase: a database gives the same transcript as its rows exported as JSON.
func TestDatabase(t *testing.T) {
	exported, err := os.ReadFile("testdata/rows.in.json")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	fromDatabase, _, err := read(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	fromRows, err := cursor.Harness.Read(bytes.NewReader(exported))
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

// TestDatabaseAsStream: a database that comes as a stream is refused, and the error says how to import it.
func TestDatabaseAsStream(t *testing.T) {
	data, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	_, err = cursor.Harness.Read(bytes.NewReader(data))
	var format *transcript.FormatError
	if !errors.As(err, &format) || !strings.Contains(format.Reason, "contextd import") {
		t.Error(err)
	}
}

// TestOtherDatabases: a database without the table, or without chats in it, is refused.
func TestOtherDatabases(t *testing.T) {
	for name, want := range map[string]string{
		"other.refused.db": "has no table cursorDiskKV", "crush.refused.db": "sqlite3 -json", "opencode.refused.db": "opencode export", "view.refused.db": "is a \"view\" and not a table", "page-512.plain.db": "no conversation",
	} {
		data, err := os.ReadFile("sqlite/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = read(t.Context(), data)
		var format *transcript.FormatError
		if !errors.As(err, &format) || !strings.Contains(format.Reason, want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestDamagedDatabase: a truncated or overwritten database gives a transcript with a warning, or an error,
// and never a panic.
func TestDamagedDatabase(t *testing.T) {
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
			tr, warnings, err := read(t.Context(), in)
			if err == nil && n > 5000 && len(warnings)+len(tr.Warnings) == 0 {
				t.Errorf("%s at %d: there is no warning", name, n)
			}
			var format *transcript.FormatError
			if err != nil && !errors.As(err, &format) {
				t.Errorf("%s at %d: %v", name, n, err)
			}
			harnesstest.Admitted(t, tr)
		}
	}
}

func FuzzDatabase(f *testing.F) {
	data, err := os.ReadFile(database)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		if !bytes.HasPrefix(data, []byte(sqlite.Magic)) {
			data = append([]byte(sqlite.Magic), data...)
		}
		tr, _, err := read(t.Context(), data)
		var format *transcript.FormatError
		if err != nil && !errors.As(err, &format) {
			t.Fatal(err)
		}
		harnesstest.Admitted(t, tr)
	})
}
