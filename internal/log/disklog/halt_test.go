package disklog_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logtest"
)

var errInjected = errors.New("injected")

// failing fails one change of the disk, or all from then on.
type failing struct {
	armed atomic.Bool
	// after is how many changes still succeed.
	after  atomic.Int64
	sticky bool
	kinds  map[errorfs.OpKind]bool
	suffix string // of the files
	failed atomic.Bool
}

func (f *failing) inject(op errorfs.Op) error {
	if !f.armed.Load() || !f.kinds[op.Kind] || !strings.HasSuffix(op.Path, f.suffix) {
		return nil
	}
	if n := f.after.Add(-1); n == 0 || (n < 0 && f.sticky) {
		f.failed.Store(true)
		return fmt.Errorf("%w: %s", errInjected, op.Path)
	}
	return nil
}

var changes = map[string]map[errorfs.OpKind]bool{
	"write":  {errorfs.OpFileWrite: true},
	"sync":   {errorfs.OpFileSync: true, errorfs.OpFileSyncData: true},
	"create": {errorfs.OpCreate: true, errorfs.OpReuseForWrite: true},
	"remove": {errorfs.OpRemove: true},
	"any": {
		errorfs.OpFileWrite: true, errorfs.OpFileSync: true, errorfs.OpFileSyncData: true, errorfs.OpCreate: true,
		errorfs.OpReuseForWrite: true, errorfs.OpRemove: true, errorfs.OpRename: true, errorfs.OpFileClose: true,
	},
}

// TestFailedChange fails a change of the disk under load: from then on the store
// refuses everything, and what it had acknowledged is on the disk, whether or not
// the machine crashes as well.
func TestFailedChange(t *testing.T) {
	seeds := 3
	if testing.Short() {
		seeds = 1
	}
	for kind, kinds := range changes {
		for _, sticky := range []bool{false, true} {
			for seed := range seeds {
				t.Run(fmt.Sprintf("%s, sticky %t, seed %d", kind, sticky, seed), func(t *testing.T) {
					r := rand.New(rand.NewPCG(uint64(seed), 7))
					disk := vfs.NewCrashableMem()
					f := &failing{sticky: sticky, kinds: kinds}
					s := open(t, "data/log", smallOptions(errorfs.Wrap(disk, errorfs.InjectorFunc(f.inject))))
					l := startLoad(t, s, newPromises(), 0, r.Uint64())
					l.promisesAfter(10 + r.IntN(50))
					f.after.Store(1 + int64(r.IntN(30)))
					f.armed.Store(true)
					kept := l.promisesAfter(1 << 30)
					l.stop()
					refusesEverything(t, s)
					var unavailable *eventlog.UnavailableError
					if err := s.Close(); !errors.As(err, &unavailable) || !errors.Is(err, errInjected) {
						t.Errorf("close: %v", err)
					}
					f.armed.Store(false)
					crashed := disk.CrashClone(vfs.CrashCloneCfg{})
					for _, fs := range []vfs.FS{disk, crashed} {
						s := open(t, "data/log", smallOptions(fs))
						kept.check(t, s)
						mustAppend(t, s, "after", logtest.Say("x/0/1"))
						if err := s.Close(); err != nil {
							t.Errorf("close: %v", err)
						}
					}
				})
				if t.Failed() {
					return
				}
			}
		}
	}
}

// refusesEverything checks that the store has failed and says so to everyone.
func refusesEverything(t *testing.T, s eventlog.Store) {
	t.Helper()
	ctx := context.Background()
	errs := map[string]error{"Healthy": s.Healthy(), "DeleteSession": s.DeleteSession(ctx, "common", 0, nil)}
	_, errs["CreateSession"] = s.CreateSession(ctx, eventlog.Session{ID: "new"})
	_, errs["Session"] = s.Session(ctx, "common")
	_, errs["ListSessions"] = s.ListSessions(ctx, eventlog.SessionQuery{})
	_, errs["Fork"] = s.Fork(ctx, eventlog.ForkRequest{ParentID: "common", NewID: "new"})
	errs["Append"] = appendTo(t, s, "common", logtest.Say("late"))
	_, errs["Read"] = logtest.Collect(s.Read(ctx, "common", 1, 0))
	_, errs["WaitPast"] = s.WaitPast(ctx, "common", 1<<40)
	errs["PutArtifacts"] = s.PutArtifacts(ctx, "common", eventlog.Artifact{Kind: "k"})
	_, errs["Artifact"] = s.Artifact(ctx, "common", "k", 0, "")
	_, errs["Artifacts"] = logtest.Collect(s.Artifacts(ctx, "common", eventlog.ArtifactQuery{Kind: "k"}))
	for what, err := range errs {
		var unavailable *eventlog.UnavailableError
		if !errors.As(err, &unavailable) || !errors.Is(err, errInjected) {
			t.Errorf("%s: got %v, want the store to be unavailable", what, err)
		}
	}
}

// TestFailedListing fails each listing of the database's directory in turn at a start that has tables to
// write and to compact: the start fails with the reason, or the store halts if the listing is one beside the
// start. Nothing is left running, and the next start has all.
func TestFailedListing(t *testing.T) {
	killed := vfs.NewCrashableMem()
	s := open(t, "data/log", smallOptions(killed))
	l := startLoad(t, s, newPromises(), 0, 9)
	kept := l.promisesAfter(1500)
	disk := killed.CrashClone(vfs.CrashCloneCfg{})
	l.stop()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for listing, reached := int64(1), true; reached; listing++ {
		for range 5 { // what runs meanwhile is somewhere else each time
			disk := disk.CrashClone(vfs.CrashCloneCfg{})
			f := &failing{kinds: map[errorfs.OpKind]bool{errorfs.OpList: true}}
			f.after.Store(listing)
			f.armed.Store(true)
			s, err := disklog.Open("data/log", smallOptions(errorfs.Wrap(disk, errorfs.InjectorFunc(f.inject))))
			reached = f.failed.Load()
			if err == nil {
				err = s.Close()
			}
			if !errors.Is(err, errInjected) && (reached || err != nil) {
				t.Errorf("listing %d: opened and closed with %v", listing, err)
			}
			s = open(t, "data/log", smallOptions(disk))
			kept.check(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A read that the disk refuses fails the call, and not the store: what it refused may be read later.
func TestFailedRead(t *testing.T) {
	for _, c := range []struct {
		suffix   string
		together bool
	}{{"", false}, {"", true}, {".blob", false}, {".sst", false}} {
		disk := vfs.NewMem()
		opts := disklog.Options{FS: disk, CacheBytes: 1, MemTableBytes: 64 << 10, DisableValueSeparation: c.together}
		s := open(t, "data/log", opts)
		for i := range 50 {
			mustAppend(t, s, "common", logtest.Message(fmt.Sprint(i), eventlog.RoleUser, eventlog.Text{Text: strings.Repeat(fmt.Sprint(i, "of many"), 200)}))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		f := &failing{sticky: true, kinds: map[errorfs.OpKind]bool{errorfs.OpFileReadAt: true}, suffix: c.suffix}
		opts.FS = errorfs.Wrap(disk, errorfs.InjectorFunc(f.inject))
		s = open(t, "data/log", opts)
		mustAppend(t, s, "new", logtest.Say("in memory"))
		if _, err := s.Session(t.Context(), "common"); err != nil {
			t.Fatal(err)
		}
		f.armed.Store(true)
		for range 3 {
			_, err := logtest.Collect(s.Read(t.Context(), "common", 1, 0))
			_, headErr := s.ChainHead(t.Context(), "common", 3)
			for _, err := range []error{err, headErr} {
				var unavailable *eventlog.UnavailableError
				if !errors.As(err, &unavailable) || !unavailable.Passing || !errors.Is(err, errInjected) {
					t.Errorf("read, of files *%s: %v", c.suffix, err)
				}
			}
		}
		mustAppend(t, s, "new", logtest.Say("as well"))
		if err := s.Healthy(); err != nil {
			t.Errorf("the store: %v", err)
		}
		f.armed.Store(false)
		verifyAll(t, s)
		if events, err := logtest.Collect(s.Read(t.Context(), "common", 1, 0)); err != nil || len(events) != 50 {
			t.Errorf("%d events, %v", len(events), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A sync that finds no room, as network file systems report it, has lost what nobody knows: the store takes
// no more, and the next opening has all that was acknowledged.
func TestSyncWithoutRoom(t *testing.T) {
	disk := vfs.NewCrashableMem()
	armed := &atomic.Bool{}
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		isSync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		if armed.Load() && isSync && strings.HasSuffix(op.Path, ".log") {
			return syscall.ENOSPC
		}
		return nil
	})
	opts := smallOptions(errorfs.Wrap(disk, inject))
	opts.ReserveBytes = 1 << 20
	s := open(t, "data/log", opts)
	l := startLoad(t, s, newPromises(), 0, 5)
	l.promisesAfter(50)
	armed.Store(true)
	kept := l.promisesAfter(1 << 30)
	l.stop()
	var unavailable *eventlog.UnavailableError
	if err := s.Healthy(); !errors.As(err, &unavailable) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "sync data/log/db/") {
		t.Errorf("the store: %v", err)
	}
	if err := s.Close(); err != nil && !errors.As(err, &unavailable) {
		t.Errorf("close: %v", err)
	}
	armed.Store(false)
	for _, fs := range []vfs.FS{disk, disk.CrashClone(vfs.CrashCloneCfg{})} {
		s := open(t, "data/log", smallOptions(fs))
		kept.check(t, s)
		mustAppend(t, s, "after", logtest.Say("x/0/1"))
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

// A table that rots is found when it is read, by whoever reads it.
func TestRottenTable(t *testing.T) {
	disk := vfs.NewMem()
	s := open(t, "data/log", disklog.Options{FS: disk, DisableValueSeparation: true})
	for i := range 50 {
		mustAppend(t, s, "common", logtest.Say(fmt.Sprintf("event number %d", i)))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := disk.List("data/log/db")
	if err != nil {
		t.Fatal(err)
	}
	rotten := 0
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		f, err := disk.OpenReadWrite("data/log/db/"+name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte{0xa5, 0x5a}, 100); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		rotten++
	}
	if rotten == 0 {
		t.Fatal("there is no table")
	}
	s = open(t, "data/log", disklog.Options{FS: disk, DisableValueSeparation: true})
	_, err = logtest.Collect(s.Read(t.Context(), "common", 1, 0))
	var corrupt *eventlog.CorruptError
	var unavailable *eventlog.UnavailableError
	if !errors.As(err, &corrupt) && !errors.As(err, &unavailable) {
		t.Errorf("read: %v", err)
	}
	if err := s.Close(); err != nil && !errors.As(err, &unavailable) {
		t.Errorf("close: %v", err)
	}
}
