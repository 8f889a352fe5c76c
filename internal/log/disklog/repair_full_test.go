package disklog

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestRepairOnAFullDisk: a repair for which there is no room fails, and changes nothing that the next one needs.
func TestRepairOnAFullDisk(t *testing.T) {
	searchable(t)
	fs, had := fillForRepair(t, nil)
	(files{t, fs}).remove(inventoryFile)
	for room := int64(0); ; room = room + 1 + room/8 {
		disk := vfs.NewMem()
		if _, err := vfs.Clone(fs, disk, "log", "log"); err != nil {
			t.Fatal(err)
		}
		var left atomic.Int64
		left.Store(room)
		full := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
			switch op.Kind {
			case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpRename, errorfs.OpMkdirAll:
				if left.Add(-1) < 0 {
					return syscall.ENOSPC
				}
			}
			return nil
		}))
		_, err := RepairDir(t.Context(), "log", Options{FS: full}, false, time.Unix(1e9, 0))
		if err == nil {
			return
		}
		at := fmt.Sprintf("after %d changes", room)
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v", at, err)
		}
		if _, err := disk.Stat("log/" + repairTemp); err == nil {
			t.Errorf("%s: it leaves %s", at, repairTemp)
		}
		if r, err := RepairDir(t.Context(), "log", Options{FS: disk}, false, time.Unix(2e9, 0)); err != nil {
			t.Fatalf("%s: %+v, %v", at, r, err)
		}
		s := openMem(t, disk)
		if has := knownOf(t, s); len(has) != len(had) {
			t.Errorf("%s: %d sessions of %d", at, len(has), len(had))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
