package disklog

import (
	"errors"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	descriptorPause = 50 * time.Millisecond
	// readTries is how often opening a file for reading is tried.
	readTries = 20
	// openTables is the most files that Pebble keeps open. It takes at most a quarter of the process's descriptors.
	openTables      = 1000
	descriptorShare = 4
)

// isShortage reports whether the process, or the machine, has no descriptor left.
// That passes.
func isShortage(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// create opens a file for writing. It waits for a file descriptor for as long as it takes, because an error here
// would halt the store for good.
func (fs *haltFS) create(open func() (vfs.File, error)) (vfs.File, error) {
	for tries := 0; ; tries++ {
		f, err := open()
		if !isShortage(err) || fs.off() || fs.isClosing() {
			return f, err
		}
		if tries == 0 {
			fs.damage.logger.Warn("the event log waits for a file descriptor: the process has too many open", "error", err)
		}
		wait(descriptorPause, fs.halted, fs.closing)
	}
}

// read opens a file to be read. It waits a while for a descriptor.
func (fs *haltFS) read(open func() (vfs.File, error)) (vfs.File, error) {
	for tries := 1; ; tries++ {
		f, err := open()
		if !isShortage(err) || fs.off() || fs.isClosing() || tries == readTries {
			return f, err
		}
		wait(descriptorPause, fs.halted, fs.closing)
	}
}

func (fs *haltFS) isClosing() bool {
	select {
	case <-fs.closing:
		return true
	default:
		return false
	}
}

// maxOpenFiles is how many files Pebble may keep open.
func maxOpenFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return openTables
	}
	return int(min(limit.Cur/descriptorShare, openTables))
}
