package disklog

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
)

// copyOf writes a snapshot's files into a directory.
func copyOf(t *testing.T, n *Snapshot) (string, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, dataDir), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range n.Files {
		r, err := n.Open(f)
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			return "", err
		}
		if int64(len(text)) != f.Size {
			t.Errorf("%s has %d bytes instead of %d", f.Name, len(text), f.Size)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(f.Name)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, nil
}

// What was acknowledged before a snapshot is in it, and it opens, while appends go on.
func TestSnapshot(t *testing.T) {
	s, err := Open(t.TempDir(), Options{MemTableBytes: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	var writer sync.WaitGroup
	acked, stop := make(chan int), make(chan struct{})
	writer.Go(func() {
		for n := 1; ; n++ {
			if err := say(t, s, "s", noise(string(rune('a'+n%26))+"-"+string(rune('a'+n/26))+" ", 20<<10)); err != nil {
				t.Error(err)
				return
			}
			select {
			case acked <- n:
			case <-stop:
				return
			}
		}
	})
	for range 3 {
		var n int
		for range 20 {
			n = <-acked
		}
		snapshot, err := s.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var busy *eventlog.UnavailableError
		if _, err := s.Snapshot(t.Context()); !errors.As(err, &busy) || !busy.Passing {
			t.Errorf("a second one: %v", err)
		}
		dir, err := copyOf(t, snapshot)
		if err != nil {
			t.Fatal(err)
		}
		if err := snapshot.Close(); err != nil {
			t.Fatal(err)
		}
		for _, readOnly := range []bool{true, false} {
			c, err := Open(dir, Options{ReadOnly: readOnly})
			if err != nil {
				t.Fatal(err)
			}
			if session, err := c.Session(t.Context(), "s"); err != nil || session.Head < eventlog.Seq(n) {
				t.Errorf("%d events of %d, %v", session.Head, n, err)
			}
			if err := c.Verify(t.Context(), "s"); err != nil {
				t.Error(err)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(stop)
	writer.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A snapshot waits for what was deleted before it, and not for what is deleted all the time.
func TestSnapshotWaitsForEarlierDeletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{eraser: newEraser(), disk: newHaltFS(vfs.NewMem()), closing: make(chan struct{})}
		for own := range segmentID(3) {
			s.eraser.add(own+1, nil)
		}
		waited := make(chan error, 1)
		go func() { waited <- s.untilErased(t.Context()) }()
		synctest.Wait()
		s.eraser.add(4, nil)
		s.eraser.done(map[segmentID][]segmentID{1: nil}, &eventlog.CorruptError{})
		s.eraser.done(map[segmentID][]segmentID{2: nil}, nil)
		synctest.Wait()
		if len(waited) > 0 {
			t.Error("it did not wait for a deletion before it")
		}
		s.eraser.done(map[segmentID][]segmentID{3: nil}, nil)
		synctest.Wait()
		select {
		case err := <-waited:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("it waits for a later deletion")
			s.eraser.done(map[segmentID][]segmentID{4: nil}, nil)
		}
	})
}

// A deletion ends a snapshot, and leaves nothing of it.
func TestDeletionEndsSnapshot(t *testing.T) {
	data := t.TempDir()
	s, err := Open(data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, "s", logtest.Say("secret-of-the-deleted-session"))
	add(t, s, "t", logtest.Say("a"))
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	snapshot, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reading, err := snapshot.Open(snapshot.Files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := DeleteErased(t.Context(), s, "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(reading); !errors.Is(err, ErrSnapshotEnded) {
		t.Errorf("reading: %v", err)
	}
	if err := reading.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := copyOf(t, snapshot); !errors.Is(err, ErrSnapshotEnded) {
		t.Errorf("copying: %v", err)
	}
	if _, err := os.Stat(filepath.Join(data, snapshotDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its files: %v", err)
	}
	if err := snapshot.Close(); err != nil {
		t.Error(err)
	}
	again, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := copyOf(t, again); err != nil {
		t.Error(err)
	}
	// What a killed process leaves goes at the next opening.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(data, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(data, snapshotDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was left: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
