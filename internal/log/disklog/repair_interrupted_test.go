package disklog

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/logtest/crashdisk"
)

// TestRepairIsInterrupted ends a repair after each change of the disk, by a kill or by a power failure, and repairs
// again.
func TestRepairIsInterrupted(t *testing.T) {
	fs, had := fillForRepair(t, nil)
	(files{t, fs}).remove(inventoryFile)
	disk := crashdisk.New()
	if _, err := vfs.Clone(fs, disk, "log", "log", vfs.CloneSync); err != nil {
		t.Fatal(err)
	}
	disk = disk.Crash(crashdisk.All)
	type interruption struct {
		step  int
		after string
		left  []*crashdisk.Disk
	}
	var all []interruption
	var one sync.Mutex // the database works in the background, too
	disk.OnChange(func(name string) {
		one.Lock()
		defer one.Unlock()
		i := interruption{step: len(all), after: name, left: []*crashdisk.Disk{disk.Kill()}}
		for seed := range uint64(6) {
			i.left = append(i.left, disk.Crash(seed))
		}
		all = append(all, i)
		if begun := len(all) - 20; begun >= 0 && begun%8 > 0 {
			all[begun].left = nil // the beginning is done again
		}
	})
	if _, err := RepairDir(t.Context(), "log", Options{FS: disk}, false, time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		for n, left := range i.left {
			at := fmt.Sprintf("after step %d of %d, %s, as %d", i.step, len(all), i.after, n)
			repairAgain(t, at, left, uint64(max(n-1, 0)), len(had))
		}
	}
	if len(all) < 40 {
		t.Errorf("a repair has %d steps", len(all))
	}
}

// repairAgain repairs what an interrupted repair left of a store with so many sessions.
func repairAgain(t *testing.T, at string, left *crashdisk.Disk, seed uint64, want int) {
	t.Helper()
	// A daemon may be started in between. What it takes in is not given up for what was rebuilt before, though the
	// power fails.
	if s, err := Open("log", Options{FS: left}); err == nil {
		want++
		add(t, s, "since", logtest.Say("after the interruption"))
		disk := left
		left = disk.Crash(seed)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{repairTemp, repairedDir} {
			if _, err := disk.Stat("log/" + name); err == nil {
				t.Errorf("%s: an opened store has %s, which deletions do not reach", at, name)
			}
		}
	} else if !strings.Contains(err.Error(), "contextd repair") {
		t.Errorf("%s: %v", at, err)
	}
	if dry, err := RepairDir(t.Context(), "log", Options{FS: left}, true, time.Unix(2e9, 0)); err != nil {
		t.Errorf("%s: dry run: %+v, %v", at, dry, err)
	}
	r, err := RepairDir(t.Context(), "log", Options{FS: left}, false, time.Unix(3e9, 0))
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	s, err := Open("log", Options{FS: left})
	if err != nil {
		t.Fatalf("%s: %v; the repair said %+v", at, err, r)
	}
	if has := knownOf(t, s); len(has) != want {
		t.Errorf("%s: %d sessions of %d", at, len(has), want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// copyAsRepaired copies the store to where a repair puts what it has rebuilt.
func copyAsRepaired(t *testing.T, fs vfs.FS) {
	t.Helper()
	if err := fs.MkdirAll("log/"+repairedDir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dataDir, formatFile, inventoryFile} {
		if _, err := vfs.Clone(fs, fs, "log/"+name, "log/"+repairedDir+"/"+name, vfs.CloneSync); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRepairOfWhatARepairLeft has what an interrupted repair had rebuilt damaged, too: nothing of what was there in
// either place is given up.
func TestRepairOfWhatARepairLeft(t *testing.T) {
	searchable(t)
	fs := vfs.NewMem()
	s := openMem(t, fs)
	add(t, s, "s", logtest.Say("a"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	copyAsRepaired(t, fs)
	disk := files{t, fs}
	disk.put(repairedDir+"/"+inventoryFile, []byte("of the second"))
	disk.put(inventoryFile, []byte("of the first"))
	r, err := RepairDir(t.Context(), "log", Options{FS: fs}, false, time.Unix(1e9, 0))
	if err != nil || len(r.Losses) > 0 || r.Whole != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	left := fmt.Sprint(contents(t, fs, "log"))
	for _, text := range []string{"of the first", "of the second"} {
		if !strings.Contains(left, text) {
			t.Errorf("the inventory %s is gone", text)
		}
	}
	if s, err = Open("log", Options{FS: fs}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Verify(t.Context(), "s"), s.Close()); err != nil {
		t.Error(err)
	}
}

// TestRepairedIsDroppedWhole has the power fail while an opening removes what an interrupted repair had rebuilt: no
// part of that is taken for the rest of a repair.
func TestRepairedIsDroppedWhole(t *testing.T) {
	searchable(t)
	disk := crashdisk.New()
	s := openMem(t, disk)
	add(t, s, "s", logtest.Say("a"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	copyAsRepaired(t, disk)
	disk = disk.Crash(crashdisk.All)
	var left []*crashdisk.Disk
	var one sync.Mutex
	disk.OnChange(func(string) {
		one.Lock()
		defer one.Unlock()
		for seed := range uint64(6) {
			left = append(left, disk.Crash(seed))
		}
	})
	s = openMem(t, disk)
	disk.OnChange(nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for i, disk := range left {
		if r, err := RepairDir(t.Context(), "log", Options{FS: disk}, false, time.Unix(1e9, 0)); err != nil {
			t.Errorf("as %d: %+v, %v", i, r, err)
			continue
		}
		s, err := Open("log", Options{FS: disk})
		if err != nil {
			t.Errorf("as %d: %v", i, err)
			continue
		}
		if err := errors.Join(s.Verify(t.Context(), "s"), s.Close()); err != nil {
			t.Errorf("as %d: %v", i, err)
		}
	}
}
