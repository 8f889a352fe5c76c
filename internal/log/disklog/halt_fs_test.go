package disklog

import (
	"errors"
	"testing"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/contextd/contextd/internal/log/disklog/durable"
)

// TestHaltFS fails each kind of change once: it is reported as done, and neither
// it nor any change after it reaches the disk.
func TestHaltFS(t *testing.T) {
	injected := errors.New("injected")
	const category = vfs.WriteCategoryUnspecified
	cases := map[string]struct {
		kind   errorfs.OpKind
		change func(fs *haltFS, f, dir vfs.File) error
	}{
		"create": {errorfs.OpCreate, func(fs *haltFS, _, _ vfs.File) error { _, err := fs.Create("d/new", category); return err }},
		"open":   {errorfs.OpOpen, func(fs *haltFS, _, _ vfs.File) error { _, err := fs.OpenReadWrite("d/new", category); return err }},
		"reuse": {errorfs.OpReuseForWrite, func(fs *haltFS, _, _ vfs.File) error {
			_, err := fs.ReuseForWrite("d/old", "d/new", category)
			return err
		}},
		"link":       {errorfs.OpLink, func(fs *haltFS, _, _ vfs.File) error { return fs.Link("d/old", "d/new") }},
		"rename":     {errorfs.OpRename, func(fs *haltFS, _, _ vfs.File) error { return fs.Rename("d/old", "d/new") }},
		"remove":     {errorfs.OpRemove, func(fs *haltFS, _, _ vfs.File) error { return fs.Remove("d/old") }},
		"remove all": {errorfs.OpRemoveAll, func(fs *haltFS, _, _ vfs.File) error { return fs.RemoveAll("d/old") }},
		"mkdir":      {errorfs.OpMkdirAll, func(fs *haltFS, _, _ vfs.File) error { return fs.MkdirAll("d/new", 0o700) }},
		"write":      {errorfs.OpFileWrite, func(_ *haltFS, f, _ vfs.File) error { _, err := f.Write([]byte("more")); return err }},
		"write at":   {errorfs.OpFileWriteAt, func(_ *haltFS, f, _ vfs.File) error { _, err := f.WriteAt([]byte("more"), 0); return err }},
		"sync":       {errorfs.OpFileSync, func(_ *haltFS, f, _ vfs.File) error { return f.Sync() }},
		"sync data":  {errorfs.OpFileSyncData, func(_ *haltFS, f, _ vfs.File) error { return f.SyncData() }},
		"sync to":    {errorfs.OpFileSyncTo, func(_ *haltFS, f, _ vfs.File) error { _, err := f.SyncTo(1); return err }},
		"stat":       {errorfs.OpFileStat, func(_ *haltFS, f, _ vfs.File) error { _, err := f.Stat(); return err }},
		"sync dir":   {errorfs.OpFileSync, func(_ *haltFS, _, dir vfs.File) error { return dir.Sync() }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			disk := vfs.NewMem()
			if err := errors.Join(disk.MkdirAll("d", 0o700), durable.Write(disk, "d/old", "old", true)); err != nil {
				t.Fatal(err)
			}
			armed := false
			fs := newHaltFS(errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if armed && op.Kind == c.kind {
					armed = false
					return injected
				}
				return nil
			})))
			f, err := fs.Create("d/file", category)
			if err != nil {
				t.Fatal(err)
			}
			dir, err := fs.OpenDir("d")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write([]byte("before")); err != nil || fs.cause() != nil {
				t.Fatalf("before the failure: %v, %v", err, fs.cause())
			}
			armed = true
			if err := c.change(fs, f, dir); err != nil {
				t.Errorf("the failed change was reported: %v", err)
			}
			if !errors.Is(fs.cause(), injected) {
				t.Fatalf("the cause is %v", fs.cause())
			}
			contents := func() map[string]string {
				found := map[string]string{}
				names, err := disk.List("d")
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range names {
					if text, err := durable.Read(disk, "d/"+name, smallFile); err == nil {
						found[name] = text
					}
				}
				return found
			}
			before := contents()
			for what, other := range cases {
				if err := other.change(fs, f, dir); err != nil {
					t.Errorf("%s, later: %v", what, err)
				}
			}
			after := contents()
			for name, text := range before {
				if after[name] != text {
					t.Errorf("%s was %q and is %q", name, text, after[name])
				}
				delete(after, name)
			}
			if len(after) > 0 || before["old"] != "old" || before["file"] != "before" {
				t.Errorf("before %v, and new after the failure %v", before, after)
			}
		})
	}
}

// Pebble reads back what it believes it wrote.
func TestHaltedDiskShowsWhatWasWrittenToIt(t *testing.T) {
	disk := vfs.NewMem()
	fs := newHaltFS(disk)
	if err := durable.Write(fs, "real", "real", true); err != nil {
		t.Fatal(err)
	}
	fs.halt(errors.New("first"))
	fs.halt(errors.New("second"))
	if fs.cause().Error() != "first" {
		t.Errorf("the cause is %v", fs.cause())
	}
	if err := errors.Join(fs.MkdirAll("d", 0o700), durable.Write(fs, "d/a", "shadow", true), fs.Rename("d/a", "d/b")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"real": "real", "d/b": "shadow"} {
		if text, err := durable.Read(fs, name, smallFile); err != nil || text != want {
			t.Errorf("%s is %q, %v", name, text, err)
		}
		if info, err := fs.Stat(name); err != nil || info.Size() != int64(len(want)) {
			t.Errorf("stat %s: %v, %v", name, info, err)
		}
	}
	if _, err := fs.Stat("none"); !oserror.IsNotExist(err) {
		t.Errorf("stat of nothing: %v", err)
	}
	if err := fs.Remove("d/b"); err != nil {
		t.Fatal(err)
	}
	if _, err := disk.Stat("d"); !oserror.IsNotExist(err) {
		t.Error("the directory reached the disk")
	}
	if vfs.Root(fs) != vfs.FS(disk) {
		t.Error("the disk cannot be found in the wrapper")
	}
}

// Removing what is not there is no failure of the disk, nor is reusing it.
func TestMissingFilesAreNoFailure(t *testing.T) {
	fs := newHaltFS(vfs.NewMem())
	if err := fs.Remove("none"); !oserror.IsNotExist(err) {
		t.Errorf("remove: %v", err)
	}
	f, err := fs.ReuseForWrite("none", "new", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil || fs.cause() != nil {
		t.Errorf("close: %v, %v", err, fs.cause())
	}
}

func TestLogsAreNotReusedDuringADeletion(t *testing.T) {
	for _, deleting := range []bool{false, true} {
		disk := vfs.NewMem()
		fs := newHaltFS(disk)
		if err := durable.Write(fs, "old", "secret", true); err != nil {
			t.Fatal(err)
		}
		if deleting {
			fs.noRecycling(1)
		}
		f, err := fs.ReuseForWrite("old", "new", vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			t.Fatal(err)
		}
		text, err := durable.Read(disk, "new", smallFile)
		if err != nil || (text == "secret") == deleting {
			t.Errorf("deleting %t: the new log holds %q, %v", deleting, text, err)
		}
		if _, err := disk.Stat("old"); !oserror.IsNotExist(err) {
			t.Errorf("deleting %t: the old log is still there", deleting)
		}
	}
}
