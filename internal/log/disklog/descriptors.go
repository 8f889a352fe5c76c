package disklog

import (
	"errors"
	"runtime"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	descriptorPause = 50 * time.Millisecond
	// readTries is how often to try to open a file for reading.
	readTries = 20
	// openTables is the most tables and files of values that Pebble keeps open. They take at most a quarter of the
	// process's descriptors.
	openTables      = 1000
	descriptorShare = 4
	// pageTables is about how many of them the reading of a page of events keeps open: a table of each level, and five
	// files of values. Those that are being read are not closed to make room for others.
	pageTables = 8
	// shardTables is how many of them a part of Pebble's cache of open files has at least.
	shardTables = 16
)

// isShortage reports whether the process, or the machine, has no free descriptor. That is temporary.
func isShortage(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// patient calls do, whose error would halt the store. If there is no file descriptor, it waits for one without a
// limit, except while the store is opened, because then no other call uses one that could become free.
func patient[T any](fs *haltFS, do func() (T, error)) (T, error) {
	for tries := 1; ; tries++ {
		out, err := do()
		if !isShortage(err) || fs.off() || fs.isClosing() || fs.opening.Load() && tries == readTries {
			return out, err
		}
		if tries == 1 {
			fs.damage.logger.Warn("the event log waits for a file descriptor: the process has too many open", "error", err)
		}
		wait(descriptorPause, fs.halted, fs.closing)
	}
}

// read opens a file for reading. It waits a while for a descriptor.
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

// MaxTables returns how many of a process's descriptors the tables and blob files of a store may take.
func MaxTables(descriptors uint64) uint64 {
	return max(min(descriptors/descriptorShare, openTables), 1)
}

// ownTables returns MaxTables for this process.
func ownTables() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return openTables
	}
	return int(MaxTables(limit.Cur))
}

// newFileCache returns a cache of open files for Pebble. Pebble's own would keep at least 64 files, and more with
// many processors.
func newFileCache() *pebble.FileCache {
	size := ownTables()
	return pebble.NewFileCache(min(runtime.GOMAXPROCS(0), max(size/shardTables, 1)), size)
}

// newPageTurns returns a channel with a place for each page that may be read at once.
func newPageTurns() chan struct{} { return make(chan struct{}, max(ownTables()/pageTables, 1)) }

// pageTurn waits until a page may be read. The caller must call done after that. Nothing for which the reading of a
// page waits may need a turn.
func (s *Store) pageTurn() (done func()) {
	s.pageTurns <- struct{}{}
	return func() { <-s.pageTurns }
}
