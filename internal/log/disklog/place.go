package disklog

import (
	"syscall"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// place is which directories a store is in. Another one may come to be where one of them was, such as a
// backup that is restored while the daemon runs: new files would get into it, beside what is there.
type place []placed

type placed struct {
	dir string
	// device and file are its number on its file system; 0 where it does not say.
	device, file uint64
}

func placeOf(fs vfs.FS, dirs ...string) (p place) {
	for _, dir := range dirs {
		device, file, err := fileNumber(fs, dir)
		if err == nil {
			p = append(p, placed{dir, device, file})
		}
	}
	return p
}

// gone is a directory that is not where it was; empty if all are.
func (p place) gone(fs vfs.FS) string {
	for _, was := range p {
		device, file, err := fileNumber(fs, was.dir)
		if oserror.IsNotExist(err) || err == nil && (device != was.device || file != was.file) {
			return was.dir
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
