package disklog_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/logtest/crashdisk"
)

// TestCopyIsInterrupted ends a copy into an empty directory, and into an empty store, after each change of the disk.
// Until all is there, nothing but a copy opens what is there; after that all of it outlives a power failure.
func TestCopyIsInterrupted(t *testing.T) {
	for name, into := range map[string]func(*crashdisk.Disk){
		"nothing": func(*crashdisk.Disk) {},
		"an empty store": func(disk *crashdisk.Disk) {
			if err := open(t, "data/log", smallOptions(disk)).Close(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			options := func(disk *crashdisk.Disk, copying string) disklog.Options {
				opts := smallOptions(disk)
				opts.Copying = copying
				return opts
			}
			disk := crashdisk.New()
			into(disk)
			disk = disk.Crash(crashdisk.All)
			type moment struct {
				disk         *crashdisk.Disk
				began, whole bool
			}
			var found []moment
			var one sync.Mutex // the database works in the background, too
			began, whole := false, false
			disk.OnChange(func(string) {
				one.Lock()
				defer one.Unlock()
				for seed := range uint64(4) {
					found = append(found, moment{disk.Crash(seed), began, whole})
				}
				found = append(found, moment{disk.Kill(), began, whole})
			})
			set := func(flag *bool) {
				one.Lock()
				defer one.Unlock()
				*flag = true
			}
			s := open(t, "data/log", options(disk, "disk:source"))
			set(&began)
			mustAppend(t, s, "s", logtest.Say("a"))
			mustAppend(t, s, "s", logtest.Say("b"))
			// Until Copied nothing else is done to the disk that may make it seem whole.
			one.Lock()
			wholeAt := len(found)
			one.Unlock()
			if err := s.Copied(t.Context()); err != nil {
				t.Fatal(err)
			}
			set(&whole)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			disk.OnChange(nil)
			found = append(found, moment{disk.Kill(), true, true})
			refused := 0
			for i, m := range found {
				repaired, repairErr := disklog.RepairDir(t.Context(), "data/log", options(m.disk.Kill(), ""), true, time.Unix(1e9, 0))
				plain, err := disklog.Open("data/log", options(m.disk.Kill(), ""))
				if err != nil {
					refused++
					if says := err.Error(); m.whole || !strings.Contains(says, "contextd copy goes on") {
						t.Errorf("%d: %v", i, err)
					}
					if repairErr == nil {
						t.Errorf("%d: a repair finds %+v", i, repaired)
					}
				} else {
					if all := heads(t, plain); all["s"] != 2 && (m.began || all["s"] != 0) || all["s"] == 2 && i < wholeAt {
						t.Errorf("%d: it is opened with the heads %v", i, all)
					}
					if err := plain.Close(); err != nil {
						t.Error(err)
					}
				}
				if other, err := disklog.Open("data/log", options(m.disk.Kill(), "disk:other")); err == nil {
					if all := heads(t, other); m.began && all["s"] != 2 {
						t.Errorf("%d: another store is copied into it", i)
					}
					if err := other.Close(); err != nil {
						t.Error(err)
					}
				}
				again, err := disklog.Open("data/log", options(m.disk, "disk:source"))
				if err != nil {
					t.Errorf("%d: a copy does not go on: %v", i, err)
					continue
				}
				if err := errors.Join(again.Copied(t.Context()), again.Close()); err != nil {
					t.Error(err)
				}
			}
			if refused < 5 {
				t.Errorf("refused %d times of %d", refused, len(found))
			}
		})
	}
}
