package disklog

import (
	"errors"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog/durable"
	"github.com/contextd/contextd/internal/log/logtest"
)

// contents returns all files below a directory.
func contents(t *testing.T, fs vfs.FS, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path := fs.PathJoin(dir, fs.PathBase(name))
		info, err := fs.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			for inner, text := range contents(t, fs, path) {
				found[inner] = text
			}
			continue
		}
		if found[path], err = durable.Read(fs, path, 1<<30); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// A store that is opened to be read shows everything, also what is only in the log of a
// process that was killed, and changes no file.
func TestReadOnly(t *testing.T) {
	disk := vfs.NewCrashableMem()
	s := openMem(t, disk)
	add(t, s, "s", logtest.Say("a"), logtest.Say("b"))
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	add(t, s, "s", logtest.Say("c"))
	add(t, s, "t", logtest.Say("d"))
	sl, target, err := s.find("t")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.forget(sl, target, nil); err != nil { // a deletion that is not finished
		t.Fatal(err)
	}
	s.release(sl)
	crashed := disk.CrashClone(vfs.CrashCloneCfg{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	before := contents(t, crashed, "log")
	for range 2 {
		s, err = Open("log", Options{FS: crashed, ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		events, err := logtest.Collect(s.Read(t.Context(), "s", 1, 0))
		if err != nil || len(events) != 3 {
			t.Errorf("%d events, %v", len(events), err)
		}
		if err := s.Verify(t.Context(), "s"); err != nil {
			t.Error(err)
		}
		if ids, err := s.SessionIDs(t.Context()); err != nil || len(ids) != 1 {
			t.Errorf("sessions %v, %v", ids, err)
		}
		_, createErr := s.CreateSession(t.Context(), eventlog.Session{ID: "new"})
		_, forkErr := s.Fork(t.Context(), eventlog.ForkRequest{ParentID: "s", NewID: "new", At: 1})
		for what, err := range map[string]error{
			"append": say(t, s, "s", "more"), "create": createErr, "fork": forkErr, "delete": s.DeleteSession(t.Context(), "s", 0, nil),
			"put": s.PutArtifacts(t.Context(), "s", eventlog.Artifact{Kind: "k", ID: "i"}),
		} {
			if !errors.As(err, new(*eventlog.ReadOnlyError)) {
				t.Errorf("%s: %v", what, err)
			}
		}
		// The bytes of t are in it still.
		if _, err := s.Snapshot(t.Context()); !errors.As(err, new(*eventlog.ReadOnlyError)) || !strings.Contains(err.Error(), "must be erased") {
			t.Errorf("a snapshot: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	after := contents(t, crashed, "log")
	for name, text := range after {
		if before[name] != text {
			t.Errorf("%s has changed", name)
		}
	}
	if len(before) != len(after) {
		t.Errorf("%d files have become %d", len(before), len(after))
	}

	if _, err := Open("none", Options{FS: crashed, ReadOnly: true}); err == nil {
		t.Error("a store that does not exist was opened to be read")
	}
	if err := crashed.MkdirAll("empty", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Open("empty", Options{FS: crashed, ReadOnly: true}); !errors.As(err, new(*FormatError)) {
		t.Errorf("an empty directory: %v", err)
	}
}

// A snapshot of a store that is only read has what was written, also where a killed process left it in the log
// alone, and nothing else that lies there.
func TestReadOnlySnapshot(t *testing.T) {
	fs := left(t, true)
	files{t, fs}.put("db/999999.sst", []byte("of nobody"))
	before := contents(t, fs, "log")
	s, err := Open("log", Options{FS: fs, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	copied := vfs.NewMem()
	to := files{t, copied}
	if err := durable.MakeDir(copied, "log/db"); err != nil {
		t.Fatal(err)
	}
	for _, f := range snapshot.Files {
		in, err := snapshot.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err := errors.Join(err, in.Close()); err != nil || int64(len(content)) != f.Size || strings.Contains(f.Name, "999999") {
			t.Errorf("%s: %d bytes of %d, %v", f.Name, len(content), f.Size, err)
		}
		to.put(f.Name, content)
	}
	if err := errors.Join(snapshot.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	if after := contents(t, fs, "log"); !maps.Equal(before, after) {
		t.Error("the store has changed")
	}
	if damaged, refusal := outcome(t, copied, "a snapshot"); len(damaged) > 0 || refusal != nil {
		t.Errorf("%v, %v", damaged, refusal)
	}
}

// What is being written to is not read beside that.
func TestReadOnlyIsLocked(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{ReadOnly: true}); !errors.As(err, new(*LockedError)) {
		t.Errorf("opened beside a writer: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Who reads is not taken for the one that wrote before.
	if s, err = Open(dir, Options{ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	var locked *LockedError
	if _, err := Open(dir, Options{}); !errors.As(err, &locked) || locked.Owner != "" {
		t.Errorf("beside a reader: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
