package disklog_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logtest/crashdisk"
)

// powerFailure is what a power failure left of a store, and what the store had promised by then.
type powerFailure struct {
	after string
	left  *crashdisk.Disk
	kept  *promises
}

// TestPowerFailure has the power fail after many changes of the disk under load.
func TestPowerFailure(t *testing.T) {
	for name, encryption := range map[string]*disklog.Encryption{"plain": nil, "encrypted": encrypted(t)} {
		t.Run(name, func(t *testing.T) {
			options := func(disk *crashdisk.Disk) disklog.Options {
				opts := smallOptions(disk)
				opts.Encryption = encryption
				return opts
			}
			disk := crashdisk.New()
			s := open(t, "data/log", options(disk))
			l := startLoad(t, s, newPromises(), 0, 1)
			var failures []powerFailure
			var one sync.Mutex // the database works in the background, too
			r := rand.New(rand.NewPCG(1, 1))
			disk.Changed = func(name string) {
				one.Lock()
				defer one.Unlock()
				if len(failures) < 50 && r.IntN(4) == 0 {
					f := powerFailure{after: name, kept: l.promisesAfter(0)}
					f.left = disk.Crash(r.Uint64())
					l.doom(f.kept)
					failures = append(failures, f)
				}
			}
			l.promisesAfter(100)
			if made, err := s.Snapshot(t.Context()); err != nil {
				t.Error(err)
			} else if err := made.Close(); err != nil {
				t.Error(err)
			}
			l.promisesAfter(200)
			l.stop()
			if err := errors.Join(s.WaitErased(t.Context(), 0), s.Close()); err != nil {
				t.Error(err)
			}
			for i, f := range failures {
				s, err := disklog.Open("data/log", options(f.left))
				if err != nil {
					t.Errorf("after %s: %v", f.after, err)
					continue
				}
				f.kept.check(t, s)
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if t.Failed() {
					t.Fatalf("at power failure %d, after %s", i, f.after)
				}
			}
			if len(failures) < 20 {
				t.Errorf("only %d power failures", len(failures))
			}
		})
	}
}
