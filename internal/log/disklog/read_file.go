package disklog

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// readError is a failed read of the disk that may succeed later. It changed nothing, so it fails one call and does
// not halt the store.
type readError struct {
	name  string
	cause error
}

func (e *readError) Error() string { return fmt.Sprintf("read %s: %v", e.name, e.cause) }

// Unwrap returns the disk's error.
func (e *readError) Unwrap() error { return e.cause }

// mayPass reports whether a failed read may succeed later.
func mayPass(err error) bool { return isShortage(err) || errors.As(err, new(*readError)) }

// readFile is a file of the database that is open for reading.
type readFile struct {
	vfs.File
	name  string
	known *damage
}

// openToRead opens a file whose failed reads (readError) are distinguished from damage.
func (fs *haltFS) openToRead(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	var f vfs.File
	var err error
	base := fs.PathBase(name)
	if isBlob(name) {
		f, err = openBlob(fs.FS, name, fs.damage, opts...)
		if err == nil && slices.Contains(fs.lost, base) {
			// The footer is intact and belongs to another file: a block's position may lie beyond the end of this
			// one.
			f, err = nil, errors.Join(&damagedError{base, "is not the file that was written"}, f.Close())
		}
	} else {
		f, err = fs.FS.Open(name, opts...)
	}
	if oserror.IsNotExist(err) {
		return nil, err
	}
	if err != nil {
		return nil, fs.damage.unread(base, err)
	}
	return readFile{f, base, fs.damage}, nil
}

// unread adds the file's name to a read error, unless the error has it already.
func (d *damage) unread(name string, err error) error {
	if err == nil || errors.Is(err, io.EOF) || isDamage(err) || isShortage(err) {
		return err
	}
	d.mu.Lock()
	first := !d.unreadable[name]
	d.unreadable[name] = true
	d.mu.Unlock()
	if !first {
		return &readError{name, err}
	}
	d.logger.Error("the disk failed to read a file of the event log: calls that need it answer STORE_BUSY until it can be read", "file", name, "error", err)
	return &readError{name, err}
}

func (f readFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	return n, f.known.unread(f.name, err)
}

func (f readFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	return n, f.known.unread(f.name, err)
}
