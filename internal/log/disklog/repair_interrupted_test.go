package disklog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/contextd/contextd/internal/log/disklog/durable"
	"github.com/contextd/contextd/internal/log/logtest"
)

// TestRepairIsInterrupted stops a repair before each change of the disk, and repairs again.
func TestRepairIsInterrupted(t *testing.T) {
	t.Run("by a power failure", func(t *testing.T) { interruptRepair(t, vfs.CrashCloneCfg{}) })
	t.Run("by a kill", func(t *testing.T) {
		interruptRepair(t, vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 2))})
	})
}

func interruptRepair(t *testing.T, left vfs.CrashCloneCfg) {
	fs, had := fillForRepair(t, nil)
	(files{t, fs}).remove(inventoryFile)
	for stop := 1; ; stop++ {
		copied := vfs.NewCrashableMem()
		if _, err := vfs.Clone(fs, copied, "log", "log", vfs.CloneSync); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{"", "log", "log/db"} {
			if err := durable.SyncDir(copied, dir); err != nil {
				t.Fatal(err)
			}
		}
		seen := 0
		var crashed *vfs.MemFS
		var one sync.Mutex // the database works in the background, too
		step := func() {
			one.Lock()
			defer one.Unlock()
			if seen++; seen == stop {
				crashed = copied.CrashClone(left)
			}
		}
		if _, err := RepairDir(t.Context(), "log", Options{FS: stepFS{copied, step}}, false, time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
		if crashed == nil {
			if stop < 30 {
				t.Errorf("a repair has %d steps", stop)
			}
			return
		}
		if seen > 30 && stop < seen-24 && stop%5 != 0 {
			continue // the beginning is done again
		}
		// A daemon may be started in between. What it takes in is not given up for what was rebuilt before.
		want := len(had)
		if s, err := Open("log", Options{FS: crashed}); err == nil {
			want++
			add(t, s, "since", logtest.Say("after the interruption"))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			for _, left := range []string{repairTemp, repairedDir} {
				if _, err := crashed.Stat("log/" + left); err == nil {
					t.Errorf("after step %d of %d: an opened store has %s, which deletions do not reach", stop, seen, left)
				}
			}
		} else if !strings.Contains(err.Error(), "contextd repair") {
			t.Errorf("after step %d of %d: %v", stop, seen, err)
		}
		if dry, err := RepairDir(t.Context(), "log", Options{FS: crashed}, true, time.Unix(2e9, 0)); err != nil {
			t.Errorf("after step %d of %d: dry run: %+v, %v", stop, seen, dry, err)
		}
		r, err := RepairDir(t.Context(), "log", Options{FS: crashed}, false, time.Unix(3e9, 0))
		if err != nil {
			t.Fatalf("after step %d of %d: %v", stop, seen, err)
		}
		s, err := Open("log", Options{FS: crashed})
		if err != nil {
			t.Fatalf("after step %d of %d: %v; the repair said %+v", stop, seen, err, r)
		}
		if has := knownOf(t, s); len(has) != want {
			t.Errorf("after step %d of %d: %d sessions of %d", stop, seen, len(has), want)
		}
		if err := s.Close(); err != nil {
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
	for _, name := range []string{dataDir, formatFile, inventoryFile} {
		if err := fs.MkdirAll("log/"+repairedDir, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := vfs.Clone(fs, fs, "log/"+name, "log/"+repairedDir+"/"+name, vfs.CloneSync); err != nil {
			t.Fatal(err)
		}
	}
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
