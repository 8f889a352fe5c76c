package disklog

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
)

// exposed lists what of a directory other users have access to.
func exposed(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode()&fs.ModeSymlink == 0 && info.Mode().Perm()&0o077 != 0 {
			names = append(names, strings.TrimPrefix(path, dir))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestFilesArePrivate has a store make, and take over, files that are its user's
// alone, whatever the directory was and the umask is.
func TestFilesArePrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(outside)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	use := func(logger *slog.Logger) {
		t.Helper()
		s, err := Open(dir, Options{Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		add(t, s, "s", logtest.Say("a"))
		if err := s.flush(); err != nil {
			t.Fatal(err)
		}
		if found := exposed(t, dir); len(found) > 0 {
			t.Errorf("others have access to %v", found)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	use(nil)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return errors.Join(err, os.Chmod(path, 0o644))
	})
	if err != nil || len(exposed(t, dir)) < 5 {
		t.Fatalf("exposed are %v, %v", exposed(t, dir), err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, dataDir, "link")); err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	use(slog.New(slog.NewTextHandler(&logged, nil)))
	if !strings.Contains(logged.String(), "it was taken away") {
		t.Errorf("the log says %s", logged.String())
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("what a link leads to has mode %v, %v", info.Mode(), err)
	}
}

// What is not the store's is left as it is.
func TestForeignFilesKeepTheirMode(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	notes := filepath.Join(dir, "notes.txt")
	if err := errors.Join(os.WriteFile(notes, nil, 0o600), os.Chmod(notes, 0o644)); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(notes); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the notes have mode %v, %v", info.Mode(), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A directory that cannot be written to is not in use by anybody.
func TestUnwritableDirectoryIsCalledThat(t *testing.T) {
	for _, cause := range []error{syscall.EROFS, syscall.EACCES} {
		disk := vfs.NewMem()
		if err := openMem(t, disk).Close(); err != nil {
			t.Fatal(err)
		}
		_, err := Open("log", Options{FS: errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpLock {
				return &fs.PathError{Op: "open", Path: op.Path, Err: cause}
			}
			return nil
		}))})
		if _, locked := errors.AsType[*LockedError](err); locked || !errors.Is(err, cause) || !strings.Contains(err.Error(), "log cannot be written to") {
			t.Errorf("%v: got %v", cause, err)
		}
	}
}

// TestShortageOfDescriptorsPasses has a change wait for a descriptor, and a read give
// up without the store having failed.
func TestShortageOfDescriptorsPasses(t *testing.T) {
	disk := vfs.NewMem()
	s := openMem(t, disk)
	add(t, s, "s", logtest.Say("a"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	none := func(errorfs.Op) bool { return false }
	turn := make(chan func(errorfs.Op) bool, 1)
	turn <- none
	s, err := Open("log", Options{FS: errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		f := <-turn
		turn <- f
		if f(op) {
			return syscall.EMFILE
		}
		return nil
	}))})
	if err != nil {
		t.Fatal(err)
	}
	set := func(f func(errorfs.Op) bool) { <-turn; turn <- f }

	set(func(op errorfs.Op) bool { return op.Kind == errorfs.OpOpen })
	// The database has the table open; what it does for another is this.
	tables := files{t, disk}.list(tableSuffix)
	_, err = s.disk.Open("log/db/" + tables[0])
	if unavailable, ok := errors.AsType[*eventlog.UnavailableError](s.fail("a table", err)); !ok || !unavailable.Passing || !isShortage(err) {
		t.Errorf("read: %v", err)
	}
	set(none)
	if events, err := logtest.Collect(s.Read(t.Context(), "s", 1, 0)); err != nil || len(events) != 1 {
		t.Errorf("later: %v, %v", events, err)
	}

	left := 3
	set(func(op errorfs.Op) bool {
		if op.Kind != errorfs.OpCreate && op.Kind != errorfs.OpReuseForWrite || left == 0 {
			return false
		}
		left--
		return true
	})
	add(t, s, "s", logtest.Say("b"))
	if err := s.flush(); err != nil || left > 0 {
		t.Errorf("flush: %v, %d shortages are left", err, left)
	}
	if err := errors.Join(s.Healthy(), s.Close()); err != nil {
		t.Error(err)
	}
}
