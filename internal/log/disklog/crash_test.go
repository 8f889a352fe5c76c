package disklog_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logtest/crashdisk"
)

// smallOptions make tables and logs change often.
func smallOptions(fs vfs.FS) disklog.Options {
	return disklog.Options{FS: fs, MemTableBytes: 64 << 10, CacheBytes: 1 << 20, IdleSessions: 2, SeparateBytes: 64}
}

// encryptedOptions are smallOptions with encryption; nil is none.
func encryptedOptions(fs vfs.FS, keys *disklog.Encryption) disklog.Options {
	opts := smallOptions(fs)
	opts.Encryption = keys
	return opts
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
	crash(t, 1, func(fs vfs.FS) disklog.Options { return encryptedOptions(fs, keys) })
}

func crash(t *testing.T, seeds int, options func(vfs.FS) disklog.Options) {
	const rounds = 4
	for seed := range seeds {
		for how, name := range []string{"nothing", "half", "all", "newest"} {
			t.Run(fmt.Sprintf("seed %d, %s of what is not synced is left", seed, name), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(seed), uint64(how)))
				disk := crashdisk.New()
				kept := newPromises()
				for round := range rounds {
					s := open(t, "data/log", options(disk))
					kept.check(t, s)
					l := startLoad(t, s, kept.clone(), round, r.Uint64())
					kept = l.promisesAfter(20 + r.IntN(80))
					crashed := disk.Crash(r.Uint64()&^3 + uint64(how))
					l.doom(kept)
					l.stop()
					if err := s.Close(); err != nil {
						t.Fatalf("close: %v", err)
					}
					disk = crashed
				}
				s := open(t, "data/log", options(disk))
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
