package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
)

// TestVerifyReportsLoss removes or truncates files of a store. Each loss must be reported in a sentence, and
// by the exit code.
func TestVerifyReportsLoss(t *testing.T) {
	cut := func(name string) error {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		return os.Truncate(name, info.Size()/2)
	}
	flip := func(name string) error {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		content[len(content)/4] ^= 1
		return os.WriteFile(name, content, 0o600)
	}
	flipIndex := func(name string) error {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		content[tableIndex(t, name)] ^= 1
		return os.WriteFile(name, content, 0o600)
	}
	for _, test := range []struct {
		name, pattern string
		fault         func(string) error
		want          string
		others        bool // other sessions are intact
	}{
		{name: "a table is missing", pattern: "db/*.sst", fault: os.Remove, want: "store: db/"},
		{name: "a table is cut", pattern: "db/*.sst", fault: cut, want: "store: db/"},
		{name: "the index of a table, with the names of all sessions, is damaged", pattern: "db/*.sst", fault: flipIndex, want: "store: db/"},
		{name: "values are missing", pattern: "db/*.blob", fault: os.Remove, want: "long: log: event ", others: true},
		{name: "values are cut", pattern: "db/*.blob", fault: cut, want: "long: log: event ", others: true},
		{name: "values are damaged", pattern: "db/*.blob", fault: flip, want: "long: log: event ", others: true},
		{name: "the manifest is missing", pattern: "db/MANIFEST-*", fault: os.Remove, want: "store: db/MANIFEST-"},
		{name: "the marker is missing", pattern: "db/marker.manifest.*", fault: os.Remove, want: "store: db/marker.manifest."},
		{name: "the format is missing", pattern: "FORMAT", fault: os.Remove, want: "store: FORMAT is missing"},
		{name: "all is missing", pattern: "db", fault: os.RemoveAll, want: "store: the directory db is missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			makeStore(t, dir, "long", strings.Repeat("said at length ", 500))
			makeStore(t, dir, "short", "two")
			found, err := filepath.Glob(filepath.Join(dir, test.pattern))
			if err != nil || len(found) == 0 {
				t.Fatalf("%v, %v", found, err)
			}
			if test.others {
				found = found[:1] // the first session's
			}
			for _, name := range found {
				if err := test.fault(name); err != nil {
					t.Fatal(err)
				}
			}
			code, out, stderr := runVerify(t, "--embedded", dir)
			if code != ExitFailure || !strings.Contains(out, test.want) {
				t.Errorf("exit %d, want %q in\n%s%s", code, test.want, out, stderr)
			}
			for _, line := range strings.Split(out+stderr, "\n") {
				if strings.HasPrefix(line, "goroutine ") || strings.Contains(line, "attached stack trace") || strings.HasPrefix(line, "  |") {
					t.Errorf("a trace: %s", line)
				}
			}
			if strings.Count(out, "long: ") > 1 {
				t.Errorf("one fault is reported more than once:\n%s", out)
			}
			if code, out, stderr := runVerify(t, "--embedded", dir, "--json"); code != ExitFailure || !strings.Contains(out, `"faults":[{`) {
				t.Errorf("as JSON: exit %d, %s%s", code, out, stderr)
			}
			if !test.others {
				return
			}
			if code, out, stderr := runVerify(t, "--embedded", dir, "--session", "short"); code != ExitOK {
				t.Errorf("the other session: exit %d, %s%s", code, out, stderr)
			}
		})
	}
}

// TestVerifyReportsLostRecords: a lost record is found, also if it is not a projection's.
func TestVerifyReportsLostRecords(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	makeStore(t, dir, "s", "short")
	store, err := disklog.Open(dir, disklog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	summary := eventlog.Artifact{Kind: "summary", Seq: 1, ID: "a", Value: []byte(strings.Repeat("said at length ", 500))}
	if err := errors.Join(store.PutArtifacts(t.Context(), "s", summary), store.Close()); err != nil {
		t.Fatal(err)
	}
	blobs, err := filepath.Glob(filepath.Join(dir, "db", "*.blob"))
	if err != nil || len(blobs) == 0 {
		t.Fatalf("%v, %v", blobs, err)
	}
	if err := os.Remove(blobs[len(blobs)-1]); err != nil {
		t.Fatal(err)
	}
	if code, out, stderr := runVerify(t, "--embedded", dir); code != ExitFailure || !strings.Contains(out, "s: records: artifact summary/1/a of segment 1 is corrupt") {
		t.Errorf("exit %d, %s%s", code, out, stderr)
	}
}

// tableIndex is the offset of a table's index.
func tableIndex(t *testing.T, name string) uint64 {
	t.Helper()
	file, err := vfs.Default.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := sstable.NewReader(t.Context(), readable, sstable.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	layout, err := reader.Layout()
	if err != nil {
		t.Fatal(err)
	}
	return layout.Index[0].Offset
}
