package durable_test

import (
	"errors"
	"io"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/contextd/contextd/internal/log/disklog/durable"
	"github.com/contextd/contextd/internal/log/logtest/crashdisk"
)

const before, after = "what was there", "what is written, in several pieces"

// oldFile is a disk that has a file durably.
func oldFile(t *testing.T) *crashdisk.Disk {
	t.Helper()
	disk := crashdisk.New()
	if err := errors.Join(disk.MkdirAll("out", 0o700), durable.Write(disk, "out/file", before, true)); err != nil {
		t.Fatal(err)
	}
	return disk.Crash(crashdisk.All)
}

func whole(fs vfs.FS) error {
	return durable.Whole(fs, "out/.temporary", "out/file", func(w io.Writer) error {
		for _, piece := range []string{after[:10], after[10:]} {
			if _, err := io.WriteString(w, piece); err != nil {
				return err
			}
		}
		return nil
	})
}

func content(t *testing.T, fs vfs.FS) string {
	t.Helper()
	text, err := durable.Read(fs, "out/file", 1000)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestWholeIsInterrupted: a power failure leaves the old file or the new one, and the new one once it was written.
func TestWholeIsInterrupted(t *testing.T) {
	disk := oldFile(t)
	disk.OnChange(func(string) {
		for seed := range uint64(12) {
			if got := content(t, disk.Crash(seed)); got != before && got != after {
				t.Errorf("it has %q", got)
			}
		}
	})
	if err := whole(disk); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(12) {
		if got := content(t, disk.Crash(seed)); got != after {
			t.Errorf("after all it has %q", got)
		}
	}
}

// TestWholeOnAFullDisk leaves the old file and nothing else.
func TestWholeOnAFullDisk(t *testing.T) {
	for _, kind := range []errorfs.OpKind{errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpRename} {
		disk := oldFile(t)
		err := whole(errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == kind {
				return syscall.ENOSPC
			}
			return nil
		})))
		names, listErr := disk.List("out")
		if !errors.Is(err, syscall.ENOSPC) || listErr != nil || len(names) != 1 || content(t, disk) != before {
			t.Errorf("with %d failing: %v, %v, %v", kind, err, names, listErr)
		}
	}
}

// TestWholeInADirectoryThatIsNotRead: who may write to a directory, and not read it, can have a file there.
func TestWholeInADirectoryThatIsNotRead(t *testing.T) {
	disk := oldFile(t)
	err := whole(errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpOpenDir {
			return syscall.EACCES
		}
		return nil
	})))
	if err != nil || content(t, disk) != after {
		t.Errorf("%q, %v", content(t, disk), err)
	}
}
