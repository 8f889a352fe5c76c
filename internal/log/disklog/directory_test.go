package disklog

import (
	"errors"
	"fmt"
	"hash/crc32"
	iofs "io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog/durable"
	"github.com/contextd/contextd/internal/log/disklog/keyring"
	"github.com/contextd/contextd/internal/log/logtest"
)

func TestDirectoryIsMadeAndLocked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir, Options{})
	var locked *LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("the second opening: %v", err)
	}
	want := fmt.Sprintf("process %d on ", os.Getpid())
	if locked.Dir != dir || !strings.HasPrefix(locked.Owner, want) || !strings.Contains(err.Error(), "is in use by "+want) {
		t.Errorf("got %+v", locked)
	}
	if locked.Unwrap() == nil {
		t.Error("the lock's own error is lost")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir, Options{}); err != nil {
		t.Fatalf("after closing: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Another process, not only another opening of this one, is kept out.
func TestDirectoryIsLockedForOtherProcesses(t *testing.T) {
	const variable = "CONTEXTD_TEST_OPEN_DIR"
	if dir := os.Getenv(variable); dir != "" {
		_, err := Open(dir, Options{})
		fmt.Println("opened:", err)
		return
	}
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), variable+"="+dir)
	out, err := child.CombinedOutput()
	if want := fmt.Sprintf("is in use by process %d on ", os.Getpid()); err != nil || !strings.Contains(string(out), want) {
		t.Errorf("the other process said %q, %v; want %q", out, err, want)
	}
}

func TestFormatIsCheckedBeforeAnythingElse(t *testing.T) {
	sum := func(text string) string {
		return text + fmt.Sprintf("crc32c %08x\n", crc32.Checksum([]byte(text), castagnoli))
	}
	newer := sum("contextd-log\nversion 2\n")
	cases := []struct {
		name, content string
		want          string
		version       int
	}{
		{name: "a later version", content: newer, want: "its format is version 2 and this program knows version 1", version: 2},
		{name: "a later version with things unknown", content: "contextd-log\nversion 12\nwhatever\n", want: "its format is version 12", version: 12},
		{name: "one bit of the version", content: strings.Replace(formatText(), "version 1", "version 3", 1), want: "FORMAT is damaged"},
		{name: "something else", content: "#!/bin/sh\n", want: "something other than an event log"},
		{name: "empty", content: "", want: "something other than an event log"},
		{name: "the magic alone", content: "contextd-log\n", want: "FORMAT is damaged"},
		{name: "no version", content: "contextd-log\nversion x\n", want: "FORMAT is damaged"},
		{name: "version 0", content: sum("contextd-log\nversion 0\n"), want: "FORMAT is damaged"},
		{name: "a wrong checksum", content: "contextd-log\nversion 1\ncrc32c 00000000\n", want: "FORMAT is damaged"},
		{name: "more than there should be", content: formatText() + "x", want: "FORMAT is damaged"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			fs := vfs.NewMem()
			s := openMem(t, fs)
			add(t, s, "s", logtest.Say("a"))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := durable.Write(fs, "log/FORMAT", c.content, true); err != nil {
				t.Fatal(err)
			}
			_, err := Open("log", Options{FS: fs})
			var format *FormatError
			if !errors.As(err, &format) || !strings.Contains(err.Error(), c.want) || format.Version != c.version {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			// Nothing was harmed, and the lock is free.
			if err := durable.Write(fs, "log/FORMAT", formatText(), true); err != nil {
				t.Fatal(err)
			}
			s = openMem(t, fs)
			if err := s.Verify(t.Context(), "s"); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestForeignDirectoryIsLeftAlone(t *testing.T) {
	fs := vfs.NewMem()
	if err := errors.Join(fs.MkdirAll("log", 0o755), durable.Write(fs, "log/letter.txt", "dear", true)); err != nil {
		t.Fatal(err)
	}
	_, err := Open("log", Options{FS: fs})
	var format *FormatError
	if !errors.As(err, &format) || !strings.Contains(err.Error(), "letter.txt") {
		t.Fatalf("got %v", err)
	}
	if text, err := durable.Read(fs, "log/letter.txt", smallFile); err != nil || text != "dear" {
		t.Errorf("the file is %q, %v", text, err)
	}
	// The remains of an interrupted opening are no obstacle.
	if err := errors.Join(fs.Remove("log/letter.txt"), durable.Write(fs, "log/FORMAT.tmp", "conte", true)); err != nil {
		t.Fatal(err)
	}
	if err := openMem(t, fs).Close(); err != nil {
		t.Fatal(err)
	}
}

// A directory of somebody else's, whatever is in it, has the same names, modes and content afterwards.
func TestForeignDirectoryIsNotChanged(t *testing.T) {
	for _, locked := range []bool{false, true} {
		dir := t.TempDir()
		do := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, sub := range []string{snapshotDir, dataDir, repairTemp, repairedDir} {
			do(os.Mkdir(filepath.Join(dir, sub), 0o755))
			do(os.WriteFile(filepath.Join(dir, sub, "letter.txt"), []byte("dear"), 0o644))
		}
		if locked { // as other databases make one
			do(os.WriteFile(filepath.Join(dir, lockFile), nil, 0o644))
		}
		do(os.Chmod(dir, 0o755))
		listed := func() (all []string) {
			do(filepath.WalkDir(dir, func(path string, entry iofs.DirEntry, err error) error {
				info, infoErr := entry.Info()
				all = append(all, fmt.Sprint(path, info.Mode()))
				return errors.Join(err, infoErr)
			}))
			return all
		}
		before := listed()
		var refused *FormatError
		if _, err := Open(dir, Options{}); !errors.As(err, &refused) {
			t.Errorf("got %v", err)
		}
		if after := listed(); !slices.Equal(before, after) {
			t.Errorf("with a file LOCK: %v: there was\n%v\nand now\n%v", locked, before, after)
		}
	}
}

// A database directory that is lost is not taken for a new store's.
func TestFormatWithoutData(t *testing.T) {
	fs := vfs.NewMem()
	s := openMem(t, fs)
	add(t, s, "s", logtest.Say("a"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := durable.Write(fs, "log/db/marker.manifest.000009.MANIFEST-999999", "", true); err != nil {
		t.Fatal(err)
	}
	if _, err := Open("log", Options{FS: fs}); err == nil {
		t.Fatal("a database without its manifest was opened")
	}
	if err := fs.Remove("log/db/marker.manifest.000009.MANIFEST-999999"); err != nil {
		t.Fatal(err)
	}
	if err := openMem(t, fs).Close(); err != nil {
		t.Fatal(err)
	}
}

// Whatever change of the disk fails while a store is opened, the opening fails
// or the store works, and the next opening finds everything.
func TestOpeningOnAFailingDisk(t *testing.T) {
	injected := errors.New("injected")
	for n := int64(1); ; n++ {
		disk := vfs.NewCrashableMem()
		s := openMem(t, disk)
		add(t, s, "s", logtest.Say("a"), logtest.Say("b"))
		crashed := disk.CrashClone(vfs.CrashCloneCfg{})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		var steps atomic.Int64
		s, err := Open("log", Options{FS: errorfs.Wrap(crashed, errorfs.InjectorFunc(func(errorfs.Op) error {
			if steps.Add(1) == n {
				return injected
			}
			return nil
		}))})
		if err == nil {
			err = s.Close()
		}
		if steps.Load() < n {
			if err != nil {
				t.Fatalf("without a failure: %v", err)
			}
			break // all steps have failed once
		}
		s = openMem(t, crashed)
		if err := s.Verify(t.Context(), "s"); err != nil {
			t.Fatalf("after a failure at step %d: %v", n, err)
		}
		if session, err := s.Session(t.Context(), "s"); err != nil || session.Head != 2 {
			t.Fatalf("after a failure at step %d: %v %v", n, session, err)
		}
		add(t, s, "s", logtest.Say("c"))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if n > 2000 {
			t.Fatal("an opening takes more than 2000 steps")
		}
	}
}

// crashInDeletion does the first half of DeleteSession to the session s, and then the power fails.
func crashInDeletion(t *testing.T, s *Store, disk *vfs.MemFS) (crashed *vfs.MemFS, target *session) {
	t.Helper()
	sl, target, err := s.find("s")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.forget(sl, target, nil); err != nil {
		t.Fatal(err)
	}
	s.release(sl)
	crashed = disk.CrashClone(vfs.CrashCloneCfg{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return crashed, target
}

// An interrupted deletion is finished by the next opening.
func TestInterruptedDeletionIsFinished(t *testing.T) {
	disk := vfs.NewCrashableMem()
	s := openMem(t, disk)
	add(t, s, "s", logtest.Say("secret-of-the-deleted-session"))
	add(t, s, "t", logtest.Say("a"))
	crashed, _ := crashInDeletion(t, s, disk)
	if !holds(t, crashed, "log/db", "secret-of-the-deleted-session") {
		t.Fatal("the secret was gone before")
	}
	s = openMem(t, crashed)
	if err := s.WaitErased(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if holds(t, crashed, "log/db", "secret-of-the-deleted-session") {
		t.Error("the secret is still there")
	}
	if _, err := s.Session(t.Context(), "s"); !errors.As(err, new(*eventlog.NotFoundError)) {
		t.Errorf("the session: %v", err)
	}
	if err := s.Verify(t.Context(), "t"); err != nil {
		t.Error(err)
	}
	if _, closer, err := s.db.Get(deletionKey(1)); err == nil {
		closer.Close()
		t.Error("the deletion's record is still there")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func holds(t *testing.T, fs vfs.FS, dir, text string) bool {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		f, err := fs.Open(fs.PathJoin(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		content := make([]byte, info.Size())
		if info.Size() > 0 {
			if _, err := f.ReadAt(content, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), text) {
			return true
		}
	}
	return false
}

// An interrupted deletion of an encrypted session destroys its key at the next opening, also after a repair.
func TestInterruptedDeletionDestroysKeys(t *testing.T) {
	for _, repaired := range []bool{false, true} {
		t.Run(fmt.Sprint("repaired ", repaired), func(t *testing.T) { interruptDeletion(t, repaired) })
	}
}

func interruptDeletion(t *testing.T, repaired bool) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	disk := vfs.NewCrashableMem()
	options := func(fs vfs.FS) Options {
		return Options{FS: fs, Encryption: &Encryption{Identities: []age.Identity{identity}}}
	}
	s, err := Open("log", options(disk))
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, "s", logtest.Say("a"))
	crashed, target := crashInDeletion(t, s, disk)
	segment := uint64(target.own().segment)
	if _, err := s.keys.Seal(nil, segment, nil, nil); err != nil {
		t.Fatalf("the key was gone before: %v", err)
	}
	if repaired {
		searchable(t)
		(files{t, crashed}).remove(inventoryFile)
		if r, err := RepairDir(t.Context(), "log", options(crashed), false, time.Unix(1e9, 0)); err != nil || r.Aside == "" {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if s, err = Open("log", options(crashed)); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitErased(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.keys.Seal(nil, segment, nil, nil); !errors.Is(err, keyring.ErrNoKey) {
		t.Errorf("the key is still there: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
