package disklog

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	formatFile = "FORMAT"
	lockFile   = "LOCK"
	ownerFile  = "OWNER"
	dataDir    = "db"

	formatMagic   = "contextd-log"
	formatVersion = 1
)

// LockedError says that another process has the directory open.
type LockedError struct {
	Dir string
	// Owner is that process; empty if it is not known.
	Owner string
	Cause error
}

func (e *LockedError) Error() string {
	owner := e.Owner
	if owner == "" {
		owner = "another process"
	}
	return fmt.Sprintf("%s is in use by %s: %v", e.Dir, owner, e.Cause)
}

// Unwrap returns the cause.
func (e *LockedError) Unwrap() error { return e.Cause }

// FormatError says that this program cannot open a directory. Nothing in it was changed.
type FormatError struct {
	Dir    string
	Reason string
	// Version is the directory's format version where it is known and not ours.
	Version int
}

func (e *FormatError) Error() string { return fmt.Sprintf("%s: %s", e.Dir, e.Reason) }

// lockDirectory takes the directory for this process.
func lockDirectory(fs vfs.FS, dir string) (io.Closer, error) {
	lock, err := fs.Lock(fs.PathJoin(dir, lockFile))
	if err != nil {
		if _, isPath := errors.AsType[*iofs.PathError](err); isPath {
			// The file cannot be made: nobody holds it.
			return nil, fmt.Errorf("%s cannot be written to: %w", dir, err)
		}
		return nil, lockedError(fs, dir, err)
	}
	host, _ := os.Hostname()
	// For the message above only: neither synced nor missed.
	_ = writeFile(fs, fs.PathJoin(dir, ownerFile), fmt.Sprintf("process %d on %s\n", os.Getpid(), host), false)
	return lock, nil
}

func lockedError(fs vfs.FS, dir string, cause error) error {
	owner, _ := readFile(fs, fs.PathJoin(dir, ownerFile), smallFile)
	return &LockedError{Dir: dir, Owner: strings.TrimSpace(owner), Cause: cause}
}

// Exists reports whether a directory of the machine holds an event log, or what is
// left of one.
func Exists(dir string) bool {
	for _, name := range []string{formatFile, inventoryFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil || !oserror.IsNotExist(err) {
			return true
		}
	}
	return false
}

// checkFormat reads the directory's format. It reports whether there is none,
// because the directory is empty.
func checkFormat(fs vfs.FS, dir string) (empty bool, err error) {
	text, err := readFile(fs, fs.PathJoin(dir, formatFile), smallFile)
	switch {
	case err == nil:
		return false, parseFormat(dir, text)
	case !oserror.IsNotExist(err):
		return false, fmt.Errorf("read %s: %w", formatFile, err)
	}
	known, _, valid, err := readInventory(fs, dir)
	switch {
	case err != nil:
		return false, err
	case valid && known.manifest.number > 0:
		return false, &MissingError{Dir: dir, Missing: []string{formatFile + " is missing"}}
	}
	names, err := fs.List(dir)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if !isOwnName(fs.PathBase(name)) {
			return false, &FormatError{Dir: dir, Reason: fmt.Sprintf("it is not empty (%s) and holds no event log", name)}
		}
	}
	return true, nil
}

// replaceFile writes a small file such that a crash leaves the old one or the new.
func replaceFile(fs vfs.FS, dir, name, text string) error {
	temporary := fs.PathJoin(dir, name+".tmp")
	if err := writeFile(fs, temporary, text, true); err != nil {
		return err
	}
	if err := fs.Rename(temporary, fs.PathJoin(dir, name)); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

func formatText() string {
	text := fmt.Sprintf("%s\nversion %d\n", formatMagic, formatVersion)
	return text + fmt.Sprintf("crc32c %08x\n", crc32.Checksum([]byte(text), castagnoli))
}

// parseFormat checks the magic, then the version, then the checksum, so that a
// later version is distinguished from damage.
func parseFormat(dir, text string) error {
	lines := strings.SplitAfter(text, "\n")
	if strings.TrimSuffix(lines[0], "\n") != formatMagic {
		return &FormatError{Dir: dir, Reason: "it holds something other than an event log"}
	}
	damaged := &FormatError{Dir: dir, Reason: formatFile + " is damaged"}
	if len(lines) < 3 {
		return damaged
	}
	number, found := strings.CutPrefix(strings.TrimSuffix(lines[1], "\n"), "version ")
	version, err := strconv.Atoi(number)
	switch {
	case !found || err != nil || version < 1:
		return damaged
	case version != formatVersion:
		return &FormatError{Dir: dir, Version: version, Reason: fmt.Sprintf(
			"its format is version %d and this program knows version %d: use the program that wrote it, or a newer one",
			version, formatVersion)}
	case text != formatText():
		return damaged
	}
	return nil
}

// smallFile is more than the files hold that consist of a few lines.
const smallFile = 4096

func readFile(fs vfs.FS, name string, limit int64) (string, error) {
	f, err := fs.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit))
	return string(text), err
}

func writeFile(fs vfs.FS, name, text string, sync bool) error {
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	if err == nil && sync {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	return err
}
