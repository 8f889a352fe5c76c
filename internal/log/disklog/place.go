package disklog

import (
	"syscall"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// place identifies the directories of a store and its lock file. One of them may be replaced while the daemon runs,
// for example by a backup that is restored: the daemon would then write new files next to the restored ones. If the
// lock file is removed, a second daemon can open the store.
type place []placed

type placed struct {
	path string
	// device and file are the device and inode numbers; 0 where the file system has none.
	device, file uint64
}

func placeOf(fs vfs.FS, paths ...string) (p place) {
	for _, path := range paths {
		device, file, err := fileNumber(fs, path)
		if err == nil {
			p = append(p, placed{path, device, file})
		}
	}
	return p
}

// gone returns a path at which the directory or file is not the same any more; empty if there is none.
func (p place) gone(fs vfs.FS) string {
	for _, was := range p {
		device, file, err := fileNumber(fs, was.path)
		if oserror.IsNotExist(err) || err == nil && (device != was.device || file != was.file) {
			return was.path
		}
	}
	return ""
}

func fileNumber(fs vfs.FS, path string) (device, file uint64, err error) {
	info, err := fs.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		device, file = uint64(stat.Dev), stat.Ino //nolint:unconvert // of other types elsewhere
	}
	return device, file, nil
}
