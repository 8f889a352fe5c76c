package disklog_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/disklog/durable"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/logtest/crashdisk"
)

// powerFailure is what a power failure left of a store, and what the store had promised by then.
type powerFailure struct {
	after string
	left  *crashdisk.Disk
	kept  *promises
	// killed says that the power is there yet, and fails when the next process has begun.
	killed bool
}

// TestPowerFailure has the power fail after many changes of the disk under load.
func TestPowerFailure(t *testing.T) {
	for name, encryption := range map[string]*disklog.Encryption{"plain": nil, "encrypted": encrypted(t)} {
		t.Run(name, func(t *testing.T) {
			options := func(disk *crashdisk.Disk) disklog.Options { return encryptedOptions(disk, encryption) }
			disk := crashdisk.New()
			s := open(t, "data/log", options(disk))
			l := startLoad(t, s, newPromises(), 0, 1)
			var failures []powerFailure
			var one sync.Mutex // the database works in the background, too
			r := rand.New(rand.NewPCG(1, 1))
			disk.OnChange(func(name string) {
				one.Lock()
				defer one.Unlock()
				if len(failures) < 40 && r.IntN(4) == 0 {
					f := powerFailure{after: name, kept: l.promisesAfter(0)}
					if f.left = disk.Crash(r.Uint64()); len(failures)%5 == 0 {
						f.left, f.killed = disk.Kill(), true
					}
					l.doom(f.kept)
					failures = append(failures, f)
				}
			})
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
				if f.killed {
					// What the next process finds, others may have seen.
					seen := heads(t, s)
					again := open(t, "data/log", options(f.left.Crash(uint64(i))))
					if now := heads(t, again); !maps.Equal(now, seen) {
						t.Errorf("after a kill and a power failure the heads are %v, and were %v", now, seen)
					}
					if err := again.Close(); err != nil {
						t.Error(err)
					}
				}
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

// heads returns the head of each session.
func heads(t *testing.T, s *disklog.Store) map[string]eventlog.Seq {
	t.Helper()
	all, err := s.ListSessions(t.Context(), eventlog.SessionQuery{})
	if err != nil {
		t.Fatal(err)
	}
	heads := map[string]eventlog.Seq{}
	for _, session := range all {
		heads[session.ID] = session.Head
	}
	return heads
}

// TestErasedAfterPowerFailure looks for what was erased in what power failures leave.
func TestErasedAfterPowerFailure(t *testing.T) {
	disk := crashdisk.New()
	opts := smallOptions(disk)
	s := open(t, "data/log", opts)
	r := rand.New(rand.NewPCG(5, 5))
	secret := newSecrets(r, "event")["event"]
	for i := range 20 {
		mustAppend(t, s, fmt.Sprint("other", i%3), logtest.Say(fmt.Sprint(i)))
		mustAppend(t, s, "gone", logtest.Message(fmt.Sprint(i), eventlog.RoleUser, eventlog.Text{Text: secret + filler(r, 9000)}))
	}
	made, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(holding(t, disk, "data", secret)) == 0 {
		t.Fatal("the secret is not found before the deletion")
	}
	if err := errors.Join(s.DeleteSession(t.Context(), "gone", 0, nil), s.WaitErased(t.Context(), 0)); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(100) {
		for _, path := range holding(t, disk.Crash(seed), "data", secret) {
			t.Errorf("seed %d: it is in %s", seed, path)
		}
	}
	if err := errors.Join(made.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// holding lists the files below a directory that hold a text.
func holding(t *testing.T, fs vfs.FS, dir, text string) (paths []string) {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		if info, err := fs.Stat(path); err == nil && info.IsDir() {
			paths = append(paths, holding(t, fs, path, text)...)
		} else if content, err := durable.Read(fs, path, 1<<30); err == nil && strings.Contains(content, text) {
			paths = append(paths, path)
		}
	}
	return paths
}
