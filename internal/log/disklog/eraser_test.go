package disklog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
)

// gateFS holds up the making of files until it is opened, so that nothing can be erased.
type gateFS struct {
	vfs.FS
	shut chan struct{} // nil where it is open
}

// Create makes a file.
func (fs *gateFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if fs.shut != nil && (strings.HasSuffix(name, tableSuffix) || strings.HasSuffix(name, blobSuffix)) {
		<-fs.shut
	}
	return fs.FS.Create(name, category)
}

func holdsText(t *testing.T, fs vfs.FS, text string) bool {
	t.Helper()
	for _, content := range (files{t, fs}).snapshot() {
		if strings.Contains(content, text) {
			return true
		}
	}
	return false
}

// TestErasingFollows deletes while nothing can be erased: the call returns, the session is gone, and what
// was deleted is erased later, after a restart as well.
func TestErasingFollows(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for _, encryption := range []*Encryption{nil, {Identities: []age.Identity{identity}}} {
		disk := vfs.NewCrashableMem()
		s, err := Open("log", Options{FS: disk, Encryption: encryption})
		if err != nil {
			t.Fatal(err)
		}
		const secret = "x9Kq2vWz7Rt4Lm8Jp3Yd"
		add(t, s, "t", logtest.Say("kept"))
		add(t, s, "s", logtest.Say(secret)) // in the last segment
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		gate := &gateFS{disk, make(chan struct{})}
		if s, err = Open("log", Options{FS: gate, Encryption: encryption}); err != nil {
			t.Fatal(err)
		}
		session, err := s.Session(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteSession(t.Context(), "s", 0, nil); err != nil {
			t.Fatal(err)
		}
		if encryption != nil && s.keys.Has(uint64(session.Incarnation)) {
			t.Error("its key is still there")
		}
		if _, err := s.Session(t.Context(), "s"); !errors.As(err, new(*eventlog.NotFoundError)) {
			t.Errorf("the deleted session: %v", err)
		}
		hurried, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.WaitErased(hurried, session.Incarnation); !errors.Is(err, context.Canceled) {
			t.Errorf("waiting in vain: %v", err)
		}
		if n := s.Disk().Erasing; n != 1 || encryption == nil && !holdsText(t, disk, secret) {
			t.Errorf("%d deletions are to be erased", n)
		}
		crashed := disk.CrashClone(vfs.CrashCloneCfg{})
		close(gate.shut)
		if err := s.WaitErased(t.Context(), session.Incarnation); err != nil {
			t.Error(err)
		}
		if s.Disk().Erasing != 0 || holdsText(t, disk, secret) {
			t.Error("it is still there")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = Open("log", Options{FS: crashed, Encryption: encryption}); err != nil {
			t.Fatal(err)
		}
		if last := s.lastSegment.Load(); last < uint64(session.Incarnation) {
			t.Errorf("the next segment is %d, and that of the deleted session was %d", last+1, session.Incarnation)
		}
		add(t, s, "s", logtest.Say("another of its name"))
		if err := errors.Join(s.WaitErased(t.Context(), 0), s.Verify(t.Context(), "s"), s.Verify(t.Context(), "t")); err != nil {
			t.Error(err)
		}
		if holdsText(t, crashed, secret) {
			t.Error("after a crash it is still there")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamagedSessionIsDeleted deletes sessions that cannot be read, by whatever of them is damaged.
func TestDamagedSessionIsDeleted(t *testing.T) {
	fs := vfs.NewMem()
	fillForSweep(t, fs)
	disk := files{t, fs}
	damaged, stuck := 0, 0
	for _, name := range disk.list(tableSuffix) {
		content := disk.get("db/" + name)
		for at := 0; at < len(content); at += len(content)/16 + 1 {
			copied, err := cloneOf(fs)
			if err != nil {
				t.Fatal(err)
			}
			altered := append([]byte(nil), content...)
			altered[at] ^= 1
			(files{t, copied}).put("db/"+name, altered)
			s := openMem(t, copied)
			for i := range sessionsOfSweep {
				id := fmt.Sprintf("s%d", i)
				if _, err := s.Session(t.Context(), id); !errors.As(err, new(*eventlog.CorruptError)) {
					continue
				}
				damaged++
				if err := s.DeleteSession(t.Context(), id, 0, nil); err != nil {
					t.Errorf("%s at %d: %v", name, at, err)
					continue
				}
				if _, err := s.Session(t.Context(), id); !errors.As(err, new(*eventlog.NotFoundError)) {
					t.Errorf("%s at %d: %s after it was deleted: %v", name, at, id, err)
				}
				if err := s.WaitErased(t.Context(), 0); err != nil {
					stuck++
					if corrupt, ok := errors.AsType[*eventlog.CorruptError](err); !ok || !corrupt.Deleted {
						t.Errorf("%s at %d: that %s is deleted is not said: %v", name, at, id, err)
					}
				}
				add(t, s, id, logtest.Say("anew"))
			}
			if err := errors.Join(s.Healthy(), s.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if damaged == 0 || stuck == 0 {
		t.Errorf("%d sessions were damaged, bytes of %d stayed", damaged, stuck)
	}
}

// TestPanicHalts panics where the store acknowledges: whoever waits is notified, and the store takes no more.
func TestPanicHalts(t *testing.T) {
	s := openMem(t, vfs.NewMem())
	add(t, s, "s", logtest.Say("a"))
	sl, target, err := s.find("s")
	if err != nil {
		t.Fatal(err)
	}
	sl.mu.Lock()
	c, err := s.submit(s.db.NewBatch(), func() { panic("not as planned") }, nil, sl)
	target.last = c
	sl.mu.Unlock()
	if err == nil {
		err = c.wait(t.Context())
	}
	var unavailable *eventlog.UnavailableError
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "not as planned") {
		t.Errorf("who waits is told: %v", err)
	}
	s.release(sl)
	if err := s.Healthy(); !errors.As(err, &unavailable) {
		t.Errorf("the store is %v", err)
	}
	if err := s.Close(); !errors.As(err, &unavailable) {
		t.Errorf("close: %v", err)
	}
}
