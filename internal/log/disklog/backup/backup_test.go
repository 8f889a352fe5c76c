package backup_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/disklog/backup"
	"github.com/contextd/contextd/internal/log/logtest/crashdisk"
)

// isWhole checks that a directory is a whole backup.
func (s store) isWhole(t *testing.T, disk *crashdisk.Disk, at string) {
	t.Helper()
	faults, err := backup.Faults(t.Context(), disk, at)
	if err != nil || len(faults) > 0 || !names(disk, at)[disklog.BackupFile] {
		t.Fatalf("it has the faults %v, %v", faults, err)
	}
}

// TestRestoreIsInterrupted: nothing takes what an interrupted restore left for a store, neither an empty one nor a whole
// one, and the next restore goes in.
func TestRestoreIsInterrupted(t *testing.T) {
	s := newStore(t)
	if err := s.backUp(t, s.disk, "backup"); err != nil {
		t.Fatal(err)
	}
	check := func(disk *crashdisk.Disk) {
		has := names(disk, "data")
		delete(has, "LOCK")
		opened, err := s.open(disk, "data")
		switch {
		case err == nil:
			_, lost := opened.Session(t.Context(), "said")
			if err := opened.Close(); err != nil {
				t.Fatal(err)
			}
			if lost != nil && (has["FORMAT"] || has["ENCRYPTION"] || has["db"]) {
				t.Errorf("of %v an empty store was made", has)
			}
			return
		case len(has) > 0 && !strings.Contains(err.Error(), "contextd restore begins it again"):
			t.Errorf("of %v: %v", has, err)
		}
		if _, err := disklog.RepairDir(t.Context(), "data", disklog.Options{FS: disk, Encryption: s.keys}, false, time.Unix(2e9, 0)); err == nil || len(has) > 0 && !strings.Contains(err.Error(), "contextd restore begins it again") {
			t.Errorf("a repair of %v: %v", has, err)
		}
		if err := restore(t, disk, "data"); err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(4) {
			s.holds(t, disk.Crash(seed), "data")
		}
	}
	for _, disk := range interrupted(s.disk, func() {
		if err := restore(t, s.disk, "data"); err != nil {
			t.Fatal(err)
		}
	}) {
		check(disk)
	}
	for seed := range uint64(40) {
		s.holds(t, s.disk.Crash(seed), "data")
	}
	err := restore(t, s.disk, "data")
	if _, ok := errors.AsType[*backup.NotEmptyError](err); !ok {
		t.Errorf("into a store: %v", err)
	}
}

// TestBackupIsInterrupted: what an interrupted backup left is neither a backup nor a store, and the next one goes in.
func TestBackupIsInterrupted(t *testing.T) {
	for name, there := range map[string]bool{"new": false, "there": true} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			disk := crashdisk.New()
			if there {
				if err := disk.MkdirAll("backups/one", 0o700); err != nil {
					t.Fatal(err)
				}
				disk = disk.Crash(crashdisk.All)
			}
			for _, left := range interrupted(disk, func() {
				if err := s.backUp(t, disk, "backups/one"); err != nil {
					t.Fatal(err)
				}
			}) {
				s.again(t, left)
			}
			for seed := range uint64(40) {
				s.isWhole(t, disk.Crash(seed), "backups/one")
			}
		})
	}
}

// again makes a backup over what an interrupted one left. Where it is interrupted, too, what is there is whole or may be
// replaced.
func (s store) again(t *testing.T, left *crashdisk.Disk) {
	t.Helper()
	const dir = "backups/one"
	has := names(left, dir)
	if !has[disklog.BackupFile] && (has["FORMAT"] || has["db"] || has["ENCRYPTION"]) {
		t.Errorf("it seems to be a store: %v", has)
	}
	var err error
	var interruptions []*crashdisk.Disk
	if again := func() { err = s.backUp(t, left, dir) }; len(has) > 2 {
		interruptions = interrupted(left, again)
	} else {
		again()
	}
	if _, ok := errors.AsType[*backup.NotEmptyError](err); err != nil && !ok {
		t.Fatalf("again, over %v: %v", has, err)
	}
	for seed := range uint64(4) {
		if err == nil {
			s.isWhole(t, left.Crash(seed), dir)
		}
	}
	s.isWhole(t, left, dir)
	if now := names(left, "backups"); len(now) != 1 {
		t.Errorf("beside it are %v", now)
	}
	for _, left := range interruptions {
		_, err := backup.Begin(left, dir)
		if _, ok := errors.AsType[*backup.NotEmptyError](err); ok {
			s.isWhole(t, left, dir)
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestFullDisk: where the disk is full, nothing is left of a backup or a restore, and the error says so.
func TestFullDisk(t *testing.T) {
	s := newStore(t)
	if err := s.backUp(t, s.disk, "backup"); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func(fs *errorfs.FS) error{
		"backup":             func(fs *errorfs.FS) error { return s.backUp(t, fs, "new") },
		"backup into there":  func(fs *errorfs.FS) error { return s.backUp(t, fs, "there/empty") },
		"restore":            func(fs *errorfs.FS) error { return restore(t, fs, "new") },
		"restore into there": func(fs *errorfs.FS) error { return restore(t, fs, "there/empty") },
	} {
		t.Run(name, func(t *testing.T) {
			for room := 0; ; room++ {
				disk := s.disk.Kill()
				if err := disk.MkdirAll("there/empty", 0o700); err != nil {
					t.Fatal(err)
				}
				left := room
				err := do(errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
					if info, err := disk.Stat(op.Path); err == nil && info.IsDir() && op.Kind == errorfs.OpFileSync {
						return nil
					}
					switch op.Kind {
					case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpRename, errorfs.OpMkdirAll:
						if left--; left < 0 {
							return syscall.ENOSPC
						}
					}
					return nil
				})))
				if err == nil {
					if room < 10 {
						t.Errorf("it has only %d changes", room)
					}
					return
				}
				if !errors.Is(err, syscall.ENOSPC) {
					t.Fatal(err)
				}
				if got := names(disk, "there/empty"); len(got) > 0 {
					t.Errorf("after %d changes it leaves %v", room, got)
				}
			}
		})
	}
}

// TestBackupWithoutLocks: a file system without locks takes a backup; with them, it takes one at a time.
func TestBackupWithoutLocks(t *testing.T) {
	s := newStore(t)
	for _, cause := range []error{syscall.ENOLCK, syscall.ENOSYS, syscall.EAGAIN} {
		err := s.backUp(t, errorfs.Wrap(crashdisk.New(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpLock {
				return cause
			}
			return nil
		})), "backups/one")
		if _, locked := errors.AsType[*disklog.LockedError](err); locked != errors.Is(cause, syscall.EAGAIN) || err != nil && !locked {
			t.Errorf("where a lock fails with %v: %v", cause, err)
		}
	}
}
