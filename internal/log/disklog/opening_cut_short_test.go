package disklog_test

import (
	"sync"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/logtest/crashdisk"
)

// TestFirstOpeningCutShort ends a first opening after each change of the disk, by a kill or by a power failure. The next
// process may find there what is not durable yet; what it acknowledges outlives a power failure nonetheless.
func TestFirstOpeningCutShort(t *testing.T) {
	for name, encryption := range map[string]*disklog.Encryption{"plain": nil, "encrypted": encrypted(t)} {
		t.Run(name, func(t *testing.T) {
			options := func(disk *crashdisk.Disk) disklog.Options { return encryptedOptions(disk, encryption) }
			disk := crashdisk.New()
			var found []*crashdisk.Disk
			var after []string
			var one sync.Mutex // the database works in the background, too
			disk.OnChange(func(name string) {
				one.Lock()
				defer one.Unlock()
				found = append(found, disk.Kill(), disk.Crash(uint64(len(found)/2)))
				after = append(after, "a kill after "+name, "a power failure after "+name)
			})
			s := open(t, "data/log", options(disk))
			mustAppend(t, s, "first", logtest.Say("a"))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			for i, disk := range found {
				s := open(t, "data/log", options(disk))
				there, err := s.ListSessions(t.Context(), eventlog.SessionQuery{})
				if err != nil {
					t.Fatal(err)
				}
				mustAppend(t, s, "second", logtest.Say("b"))
				for seed := range uint64(2) {
					left, err := disklog.Open("data/log", options(disk.Crash(seed)))
					if err != nil {
						t.Errorf("%s, seed %d: %v", after[i], seed, err)
						continue
					}
					for _, want := range append(there, eventlog.Session{ID: "second"}) {
						if _, err := left.Session(t.Context(), want.ID); err != nil {
							t.Errorf("%s, seed %d: %v", after[i], seed, err)
						}
					}
					verifyAll(t, left)
					if err := left.Close(); err != nil {
						t.Error(err)
					}
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if len(found) < 60 {
				t.Errorf("a first opening has %d changes", len(found)/2)
			}
		})
	}
}
