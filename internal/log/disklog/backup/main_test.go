package backup_test

import (
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/disklog/backup"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/logtest/crashdisk"
)

// store is an encrypted store with a session, on a disk of which all is durable.
type store struct {
	disk *crashdisk.Disk
	keys *disklog.Encryption
}

func newStore(t *testing.T) store {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	s := store{crashdisk.New(), &disklog.Encryption{Identities: []age.Identity{id}, Dir: "keys"}}
	opened, err := s.open(s.disk, "store")
	if err != nil {
		t.Fatal(err)
	}
	c, err := opened.Append(t.Context(), "said", eventlog.Batch{Events: []eventlog.Event{logtest.Say("a")}})
	if err == nil {
		_, err = c.Wait(t.Context())
	}
	if err := errors.Join(err, opened.Close()); err != nil {
		t.Fatal(err)
	}
	s.disk = s.disk.Crash(crashdisk.All)
	return s
}

func (s store) open(disk vfs.FS, dir string) (*disklog.Store, error) {
	return disklog.Open(dir, disklog.Options{FS: disk, Encryption: s.keys})
}

// holds checks that a directory is the store, whole.
func (s store) holds(t *testing.T, disk vfs.FS, dir string) {
	t.Helper()
	opened, err := s.open(disk, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(opened.Verify(t.Context(), "said"), opened.Close()); err != nil {
		t.Fatal(err)
	}
}

// backUp makes a backup on a disk.
func (s store) backUp(t *testing.T, disk vfs.FS, dir string) (err error) {
	t.Helper()
	opened, err := s.open(s.disk, "store")
	if err != nil {
		t.Fatal(err)
	}
	made, err := opened.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(made.Close(), opened.Close()); err != nil {
			t.Error(err)
		}
	}()
	d, err := backup.Begin(disk, dir)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Abandon())
		}
	}()
	m := &backup.Manifest{Time: time.Unix(1e9, 0)}
	for _, f := range made.Files {
		in, err := made.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err := errors.Join(err, in.Close()); err != nil {
			t.Fatal(err)
		}
		out, err := d.Create(backup.File{Name: f.Name, Size: uint64(f.Size), ModifyTime: f.Modified})
		if err != nil {
			return err
		}
		if _, err := out.Write(content); err != nil {
			return errors.Join(err, out.Abandon())
		}
		of, err := out.Finish()
		if err != nil {
			return err
		}
		m.Files = append(m.Files, of)
	}
	return d.Finish(m)
}

// restore restores the backup in the directory backup.
func restore(t *testing.T, disk vfs.FS, dir string) error {
	t.Helper()
	m, err := backup.Read(disk, "backup")
	if err != nil {
		t.Fatal(err)
	}
	return m.Restore(t.Context(), disk, dir, func(backup.File, bool) {})
}

// interrupted returns what kills and power failures leave of the disk, at each change of it that do makes.
func interrupted(disk *crashdisk.Disk, do func()) (left []*crashdisk.Disk) {
	var one sync.Mutex
	disk.OnChange(func(string) {
		one.Lock()
		defer one.Unlock()
		left = append(left, disk.Kill())
		for seed := range uint64(8) {
			left = append(left, disk.Crash(seed))
		}
	})
	do()
	disk.OnChange(nil)
	return left
}

// names lists a directory; it may be missing.
func names(disk vfs.FS, dir string) map[string]bool {
	all, _ := disk.List(dir)
	has := map[string]bool{}
	for _, name := range all {
		has[disk.PathBase(name)] = true
	}
	return has
}
