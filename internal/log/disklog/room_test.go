package disklog

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
)

const testReserve = 4 << 20

func openFull(t *testing.T, disk *quotaFS) *Store {
	t.Helper()
	s, err := Open("log", Options{FS: disk, MemTableBytes: 256 << 10, CacheBytes: 1 << 20, ReserveBytes: testReserve, Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatalf("open with %d bytes used of %d: %v", disk.used, disk.size, err)
	}
	return s
}

func say(t *testing.T, s *Store, id, text string) error {
	t.Helper()
	c, err := s.Append(t.Context(), id, eventlog.Batch{Events: []eventlog.Event{logtest.Message(text[:min(len(text), 20)], eventlog.RoleUser, eventlog.Text{Text: text})}})
	if err == nil {
		_, err = c.Wait(t.Context())
	}
	return err
}

// noise is a text that cannot be compressed much.
func noise(begin string, length int) string {
	var random [32]byte
	copy(random[:], begin)
	text := make([]byte, length/2)
	_, _ = rand.NewChaCha8(random).Read(text) // it never fails
	return begin + hex.EncodeToString(text)
}

// fillUp appends from several goroutines until nothing is taken in, and returns how many
// events were acknowledged.
func fillUp(t *testing.T, s *Store) map[string]int {
	t.Helper()
	var mu sync.Mutex
	acked := map[string]int{}
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			id := fmt.Sprintf("s%d", w)
			for n := 0; ; n++ {
				err := say(t, s, id, noise(fmt.Sprintf("%s-%d ", id, n), 30<<10))
				if errors.As(err, new(*eventlog.FullError)) {
					return
				}
				if err != nil {
					t.Errorf("append %d to %s: %v", n, id, err)
					return
				}
				mu.Lock()
				acked[id]++
				mu.Unlock()
			}
		})
	}
	writers.Wait()
	return acked
}

func holdsAll(t *testing.T, s *Store, acked map[string]int) {
	t.Helper()
	for id, n := range acked {
		events, err := logtest.Collect(s.Read(t.Context(), id, 1, 0))
		if err != nil || len(events) != n {
			t.Errorf("%s: %d events of %d, %v", id, len(events), n, err)
		}
		if err := s.Verify(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
}

// A full disk keeps nothing from being read, deleted or opened, and once there is room
// the store takes in again.
func TestFullDisk(t *testing.T) {
	disk := newQuotaFS(40 << 20)
	s := openFull(t, disk)
	if got := s.Disk(); got.Reserve != testReserve || got.Full || got.Total != 40<<20 {
		t.Fatalf("at the start: %+v", got)
	}
	acked := fillUp(t, s)
	for id, n := range acked {
		if n == 0 {
			t.Fatalf("nothing was appended to %s", id)
		}
	}
	if s.Healthy() != nil || !s.Disk().Full {
		t.Fatalf("%v, %+v", s.Healthy(), s.Disk())
	}
	holdsAll(t, s, acked)
	// Who lost the answer learns that nothing has to be stored.
	for id := range acked {
		if err := say(t, s, id, noise(id+"-0 ", 30<<10)); err != nil {
			t.Errorf("%s, repeated: %v", id, err)
		}
	}
	_, createErr := s.CreateSession(t.Context(), eventlog.Session{ID: "new"})
	_, forkErr := s.Fork(t.Context(), eventlog.ForkRequest{ParentID: "s0", NewID: "new", At: 1})
	for what, err := range map[string]error{
		"create": createErr, "fork": forkErr,
		"put": s.PutArtifacts(t.Context(), "s0", eventlog.Artifact{Kind: "k", ID: "i"}),
	} {
		if !errors.As(err, new(*eventlog.FullError)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// A restart works, and again, and what is refused is still.
	for range 2 {
		disk.fill()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openFull(t, disk)
		holdsAll(t, s, acked)
	}
	if err := s.DeleteSession(t.Context(), "s0", 0, nil); err != nil {
		t.Fatalf("delete: %v", err)
	}
	delete(acked, "s0")
	holdsAll(t, s, acked)
	disk.resize(64 << 20)
	if got := s.Disk(); got.Full || got.Reserve != testReserve {
		t.Errorf("with room: %+v", got)
	}
	if err := say(t, s, "s1", "more"); err != nil {
		t.Errorf("with room: %v", err)
	}
	acked["s1"]++
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openFull(t, disk)
	holdsAll(t, s, acked)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Where others use up what the reserve gives, what was admitted waits for room, and what
// is stored is read meanwhile. Without any room a store cannot be opened, and says so.
func TestFullDiskWithoutReserve(t *testing.T) {
	disk := newQuotaFS(40 << 20)
	s := openFull(t, disk)
	if err := say(t, s, "s", "first"); err != nil {
		t.Fatal(err)
	}
	admitted := func(text string) chan error {
		done := make(chan error, 1)
		go func() { done <- say(t, s, "s", text) }()
		for !s.room.full.Load() {
			runtime.Gosched()
		}
		return done
	}
	disk.resize(0)
	second := admitted("second")
	holdsAll(t, s, map[string]int{"s": 1})
	if s.Healthy() != nil {
		t.Error(s.Healthy())
	}
	disk.resize(40 << 20)
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	if got := s.Disk(); got.Full {
		t.Errorf("with room: %+v", got)
	}

	disk.resize(0)
	third := admitted("third")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-third; !errors.As(err, new(*eventlog.UnavailableError)) {
		t.Errorf("what was not written: %v", err)
	}
	if _, err := Open("log", Options{FS: disk, ReserveBytes: testReserve}); err == nil || !strings.Contains(err.Error(), "log: the disk is full") {
		t.Fatalf("open without room: %v", err)
	}
	disk.resize(40 << 20)
	s = openFull(t, disk)
	holdsAll(t, s, map[string]int{"s": 2})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// The log warns of a disk that gets full, once, and says when it is over.
func TestDiskGetsFull(t *testing.T) {
	disk := newQuotaFS(40 << 20)
	var log strings.Builder
	s, err := Open("log", Options{FS: disk, LowBytes: 16 << 20, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []uint64{8 << 20, 9 << 20, 40 << 20, 40 << 20, 8 << 20} {
		disk.resize(size)
		if got := s.Disk(); got.Low != (size < 16<<20) || got.Full {
			t.Errorf("of %d bytes: %+v", size, got)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "the disk is nearly full"); n != 2 || strings.Count(log.String(), "room enough") != 1 {
		t.Errorf("the log:\n%s", log.String())
	}
}

// Every sync of what is appended is reported.
func TestSyncsAreReported(t *testing.T) {
	var begun, ended atomic.Int64
	s, err := Open("log", Options{FS: newQuotaFS(40 << 20), Syncing: func() func() {
		begun.Add(1)
		return func() { ended.Add(1) }
	}})
	if err != nil {
		t.Fatal(err)
	}
	before := ended.Load()
	if err := say(t, s, "s", "first"); err != nil {
		t.Fatal(err)
	}
	if ended.Load() == before {
		t.Error("an append was synced and nobody was notified")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if begun.Load() != ended.Load() {
		t.Errorf("%d began and %d ended", begun.Load(), ended.Load())
	}
}

// A backup of a store on a full disk is refused as such, and does the store no harm.
func TestSnapshotOnAFullDisk(t *testing.T) {
	disk := newQuotaFS(24 << 20)
	s, err := Open("log", Options{FS: disk, ReserveBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(say(t, s, "s", noise("a", 500<<10)), s.flush(), say(t, s, "s", noise("b", 100<<10))); err != nil {
		t.Fatal(err)
	}
	disk.fill()
	if _, err := s.Snapshot(t.Context()); !errors.As(err, new(*eventlog.FullError)) {
		t.Errorf("got %v", err)
	}
	disk.resize(24 << 20)
	if err := errors.Join(s.Healthy(), s.Verify(t.Context(), "s"), s.Close()); err != nil {
		t.Error(err)
	}
}

// A backup that finds nothing of the reserve that is not for deletions does not keep these from making room.
func TestSnapshotWithoutReserve(t *testing.T) {
	for _, noticed := range []bool{true, false} {
		disk := newQuotaFS(40 << 20)
		s := openFull(t, disk)
		if err := errors.Join(say(t, s, "s", "a"), say(t, s, "t", "b"), s.flush()); err != nil {
			t.Fatal(err)
		}
		for s.room.give(reservePieces / 2) {
		}
		disk.fill()
		if noticed {
			_ = s.Disk()
		}
		snapshot, err := s.Snapshot(t.Context())
		if err == nil && !noticed {
			err = snapshot.Close()
		} else if errors.As(err, new(*eventlog.FullError)) {
			err = nil
		}
		if err != nil {
			t.Errorf("noticed %t: got %v", noticed, err)
		}
		if err := errors.Join(s.DeleteSession(t.Context(), "t", 0, nil), s.Verify(t.Context(), "s"), s.Close()); err != nil {
			t.Errorf("noticed %t: %v", noticed, err)
		}
	}
}

// What is removed under the store takes nothing in: what was written there could not be read again.
func TestDirectoryIsRemoved(t *testing.T) {
	for what, remove := range map[string]func(dir string) error{
		"removed":       os.RemoveAll,
		"moved":         func(dir string) error { return os.Rename(dir, dir+"-elsewhere") },
		"its database":  func(dir string) error { return os.RemoveAll(filepath.Join(dir, dataDir)) },
		"its lock file": func(dir string) error { return os.Remove(filepath.Join(dir, lockFile)) },
		"another in its place": func(dir string) error {
			return errors.Join(os.CopyFS(dir+"-copy", os.DirFS(dir)), os.Rename(dir, dir+"-elsewhere"), os.Rename(dir+"-copy", dir))
		},
	} {
		dir := filepath.Join(t.TempDir(), "log")
		s, err := Open(dir, Options{ReserveBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		add(t, s, "s", logtest.Say("a"))
		if err := remove(dir); err != nil {
			t.Fatal(err)
		}
		_ = s.Disk()
		if err := s.Healthy(); err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), " is gone: it was removed or moved") {
			t.Errorf("%s: it is well: %v", what, err)
		}
		if _, err := s.Append(t.Context(), "s", eventlog.Batch{Events: []eventlog.Event{logtest.Say("b")}}); err == nil {
			t.Errorf("%s: an event is taken in", what)
		}
		if err := s.Close(); err == nil {
			t.Errorf("%s: it is closed as if nothing had happened", what)
		}
	}
}
