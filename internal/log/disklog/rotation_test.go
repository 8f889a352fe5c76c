package disklog_test

import (
	"errors"
	"sync"
	"testing"

	"filippo.io/age"

	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/logtest/crashdisk"
)

// TestRotationIsInterrupted ends the first opening with a new key after each change of the disk. Both keys open what is
// there, and once an opening with the new key alone succeeded, no power failure makes the old one necessary again.
func TestRotationIsInterrupted(t *testing.T) {
	var keys []age.Identity
	for range 2 {
		id, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, id)
	}
	options := func(disk *crashdisk.Disk, keys ...age.Identity) disklog.Options {
		return encryptedOptions(disk, &disklog.Encryption{Identities: keys})
	}
	before, after := keys[0], keys[1]
	holds := func(disk *crashdisk.Disk, keys ...age.Identity) error {
		s, err := disklog.Open("data/log", options(disk, keys...))
		if err != nil {
			return err
		}
		return errors.Join(s.Verify(t.Context(), "s"), s.Close())
	}
	disk := crashdisk.New()
	s := open(t, "data/log", options(disk, before))
	mustAppend(t, s, "s", logtest.Say("a"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	disk = disk.Crash(crashdisk.All)
	var found []*crashdisk.Disk
	var one sync.Mutex // the database works in the background, too
	disk.OnChange(func(string) {
		one.Lock()
		defer one.Unlock()
		found = append(found, disk.Kill())
		for seed := range uint64(4) {
			found = append(found, disk.Crash(seed))
		}
	})
	if err := holds(disk, after, before); err != nil {
		t.Fatal(err)
	}
	disk.OnChange(nil)
	for _, disk := range found {
		if holds(disk.Kill(), after) == nil {
			if err := holds(disk, after); err != nil {
				t.Fatal(err)
			}
		} else if err := holds(disk, after, before); err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(4) {
			if err := holds(disk.Crash(seed), after); err != nil {
				t.Error(err)
			}
		}
	}
}
