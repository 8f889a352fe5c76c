package disklog_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logtest"
)

// smallOptions make tables and logs change often.
func smallOptions(fs vfs.FS) disklog.Options {
	return disklog.Options{FS: fs, MemTableBytes: 64 << 10, CacheBytes: 1 << 20, IdleSessions: 2, SeparateBytes: 64}
}

// crashFS is a disk of which a clone may be taken at any time: that of Pebble locks up if it is while a file is reused.
type crashFS struct{ *vfs.MemFS }

func (fs crashFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := fs.Rename(oldname, newname); err != nil {
		return nil, err
	}
	return fs.OpenReadWrite(newname, category)
}

// TestCrash takes the disk away under load, as a power failure does, again and
// again, and goes on with what is left.
func TestCrash(t *testing.T) {
	seeds := 4
	if testing.Short() {
		seeds = 1
	}
	crash(t, seeds, smallOptions)
}

func TestCrashEncrypted(t *testing.T) {
	keys := encrypted(t)
	crash(t, 1, func(fs vfs.FS) disklog.Options {
		opts := smallOptions(fs)
		opts.Encryption = keys
		return opts
	})
}

func crash(t *testing.T, seeds int, options func(vfs.FS) disklog.Options) {
	const rounds = 4
	for seed := range seeds {
		for _, unsynced := range []int{0, 50, 100} {
			t.Run(fmt.Sprintf("seed %d, %d%% unsynced", seed, unsynced), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(seed), uint64(unsynced)))
				fs := vfs.NewCrashableMem()
				kept := newPromises()
				for round := range rounds {
					s := open(t, "data/log", options(crashFS{fs}))
					kept.check(t, s)
					l := startLoad(t, s, kept.clone(), round, r.Uint64())
					kept = l.promisesAfter(20 + r.IntN(80))
					crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: rand.New(rand.NewPCG(r.Uint64(), 0))})
					l.doom(kept)
					l.stop()
					if err := s.Close(); err != nil {
						t.Fatalf("close: %v", err)
					}
					fs = crashed
				}
				s := open(t, "data/log", options(crashFS{fs}))
				kept.check(t, s)
				if err := s.Close(); err != nil {
					t.Fatalf("close: %v", err)
				}
			})
			if t.Failed() {
				return
			}
		}
	}
}

// markerFS is a disk that keeps what crashes would leave when a marker was just made, which names a new file, or is
// about to be removed.
type markerFS struct {
	crashFS
	crashes []*vfs.MemFS
}

func (fs *markerFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.crashFS.Create(name, category)
	if strings.HasPrefix(fs.PathBase(name), "marker.") {
		for seed := range uint64(20) {
			fs.crashes = append(fs.crashes, fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(seed, 0))}))
		}
	}
	return f, err
}

func (fs *markerFS) Remove(name string) error {
	if strings.HasPrefix(fs.PathBase(name), "marker.") {
		crash := fs.CrashClone(vfs.CrashCloneCfg{})
		if err := crash.Remove(name); err != nil {
			return err
		}
		fs.crashes = append(fs.crashes, crash)
	}
	return fs.crashFS.Remove(name)
}

// TestCrashAtMarker crashes where the disk keeps some changes of a directory and loses others.
func TestCrashAtMarker(t *testing.T) {
	fs := &markerFS{crashFS: crashFS{vfs.NewCrashableMem()}}
	s := open(t, "data/log", smallOptions(fs))
	for i := range 40 {
		c, err := s.Append(t.Context(), "s", eventlog.Batch{Events: []eventlog.Event{logtest.Say(strings.Repeat(fmt.Sprint(i), 8<<10))}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, crash := range fs.crashes {
		if err := open(t, "data/log", smallOptions(crash)).Close(); err != nil {
			t.Error(err)
		}
	}
	if len(fs.crashes) < 100 {
		t.Errorf("only %d crashes", len(fs.crashes))
	}
}
