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
	"syscall"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/contextd/contextd/internal/log/disklog/durable"
)

const (
	formatFile = "FORMAT"
	lockFile   = "LOCK"
	ownerFile  = "OWNER"
	dataDir    = "db"

	// BackupFile lists what a backup has; see the command of that name.
	BackupFile = "BACKUP.json"
	// RestoringFile is there while a backup is copied into the directory.
	RestoringFile = "RESTORING"

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

// lockOwn locks a directory that is a store's, or is empty and is to become one. Into any other it writes nothing.
func lockOwn(fs vfs.FS, dir string) (io.Closer, error) {
	if err := refuseBackup(fs, dir); err != nil {
		return nil, err
	}
	_, err := checkFormat(fs, dir)
	if _, foreign := errors.AsType[*FormatError](err); foreign {
		// A process that is making a store there now has left its name before anything that is not expected.
		if _, ownerErr := fs.Stat(fs.PathJoin(dir, ownerFile)); oserror.IsNotExist(ownerErr) {
			return nil, err
		}
	}
	return lockDirectory(fs, dir)
}

// IsBackup reports whether a directory of the machine is a backup and no store yet.
func IsBackup(dir string) bool { return isBackup(vfs.Default, dir) }

// isBackup reports whether a directory has a backup's list and no inventory. Each opening of a store makes an
// inventory, so such a directory was never opened as one.
func isBackup(fs vfs.FS, dir string) bool {
	_, listErr := fs.Stat(fs.PathJoin(dir, BackupFile))
	_, inventoryErr := fs.Stat(fs.PathJoin(dir, inventoryFile))
	return listErr == nil && oserror.IsNotExist(inventoryErr)
}

// refuseBackup returns an error for a backup, so that opening it does not change it.
func refuseBackup(fs vfs.FS, dir string) error {
	if isBackup(fs, dir) {
		return &FormatError{Dir: dir, Reason: "it is a backup, which nothing may be written to: contextd restore makes a data directory of it"}
	}
	return nil
}

// lockDirectory takes the directory for this process.
func lockDirectory(fs vfs.FS, dir string) (io.Closer, error) {
	lock, err := fs.Lock(fs.PathJoin(dir, lockFile))
	if err != nil {
		if errors.Is(err, syscall.ENOTDIR) {
			return nil, fmt.Errorf("%s is not a directory", dir)
		}
		if _, isPath := errors.AsType[*iofs.PathError](err); isPath {
			// This process cannot make the lock file, so it is no lock that another one holds.
			return nil, fmt.Errorf("%s cannot be written to: %w", dir, err)
		}
		return nil, lockedError(fs, dir, err)
	}
	host, _ := os.Hostname()
	// The owner's name is only for LockedError: it need not be durable, and may be missing.
	owner := fs.PathJoin(dir, ownerFile)
	_ = durable.Write(fs, owner, fmt.Sprintf("process %d on %s\n", os.Getpid(), host), false)
	return owned{lock, func() { _ = fs.Remove(owner) }}, nil
}

// owned is a lock with its owner's name beside it, which goes first: who only reads takes the lock without leaving a name.
type owned struct {
	io.Closer
	forget func()
}

func (o owned) Close() error {
	o.forget()
	return o.Closer.Close()
}

func lockedError(fs vfs.FS, dir string, cause error) error {
	owner, _ := durable.Read(fs, fs.PathJoin(dir, ownerFile), smallFile)
	return &LockedError{Dir: dir, Owner: strings.TrimSpace(owner), Cause: cause}
}

// Exists reports whether a directory of the machine holds an event log, or what is
// left of one.
func Exists(dir string) bool {
	for _, name := range []string{formatFile, inventoryFile, RestoringFile, copyingFile, filepath.Join(repairedDir, formatFile)} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil || !oserror.IsNotExist(err) {
			return true
		}
	}
	return false
}

// Around returns the directory of the machine, a store or a backup, that a path is within; empty if there is none.
func Around(path string) string {
	at, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	there, err := filepath.EvalSymlinks(at)
	if err == nil {
		there = filepath.Dir(there)
	}
	for err != nil && at != filepath.Dir(at) {
		at = filepath.Dir(at) // what does not exist is made there
		there, err = filepath.EvalSymlinks(at)
	}
	for ; there != filepath.Dir(there); there = filepath.Dir(there) {
		_, formatErr := os.Stat(filepath.Join(there, formatFile))
		_, inventoryErr := os.Stat(filepath.Join(there, inventoryFile))
		if formatErr == nil && inventoryErr == nil || IsBackup(there) {
			return there
		}
	}
	return ""
}

// Written is when a directory of the machine was last written to as a store, by the clock of then; zero where it is none,
// or cannot be read.
func Written(dir string) time.Time {
	info, err := os.Stat(filepath.Join(dir, inventoryFile))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// refuseRestoring returns an error for a directory with a part of a backup.
func refuseRestoring(fs vfs.FS, dir string) error {
	if _, err := fs.Stat(fs.PathJoin(dir, RestoringFile)); err == nil {
		return &FormatError{Dir: dir, Reason: "a restore into it is under way or was interrupted: contextd restore begins it again"}
	}
	return nil
}

// checkFormat reads the directory's format. It reports whether there is none,
// because the directory is empty.
func checkFormat(fs vfs.FS, dir string) (empty bool, err error) {
	if err := refuseRestoring(fs, dir); err != nil {
		return false, err
	}
	text, err := durable.Read(fs, fs.PathJoin(dir, formatFile), smallFile)
	switch {
	case err == nil:
		return false, parseFormat(dir, text)
	case !oserror.IsNotExist(err):
		return false, fmt.Errorf("read %s: %w", formatFile, err)
	}
	_, repairErr := fs.Stat(repairedFormat(fs, dir))
	known, _, valid, err := readInventory(fs, dir)
	switch {
	case err != nil:
		return false, err
	case repairErr == nil:
		return false, &FormatError{Dir: dir, Reason: "a repair of it was interrupted, which contextd repair goes on with"}
	case valid && known.manifest.number > 0:
		return false, &MissingError{Dir: dir, Missing: []string{formatFile + " is missing"}}
	}
	names, err := fs.List(dir)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		// A store is encrypted only once it has its format.
		if base := fs.PathBase(name); !isOwnName(base) || base == encryptionFile {
			reason := fmt.Sprintf("it is not empty (%s) and holds no event log", name)
			if holdsAnything(fs, dir) {
				reason += fmt.Sprintf(", unless %s and %s are lost: contextd repair --data-dir %s --dry-run shows what is left of one", formatFile, inventoryFile, dir)
			}
			return false, &FormatError{Dir: dir, Reason: reason}
		}
	}
	return true, nil
}

// repairedFormat is the format file of a rebuilt store. A repair moves it into place last, so that its presence there
// means that all else is in place.
func repairedFormat(fs vfs.FS, dir string) string {
	return fs.PathJoin(fs.PathJoin(dir, repairedDir), formatFile)
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
		return &FormatError{Dir: dir, Reason: "it holds something other than an event log, or " + formatFile + " is damaged"}
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
	case version != formatVersion && lines[2] == strings.SplitAfter(formatText(), "\n")[2]:
		return damaged // it is no later version: the checksum is the one that our version computes
	case version != formatVersion:
		return &FormatError{Dir: dir, Version: version, Reason: fmt.Sprintf(
			"its format is version %d and this program knows version %d: use the program that wrote it, or a newer one",
			version, formatVersion)}
	case text != formatText():
		return damaged
	}
	return nil
}

// smallFile exceeds the size of the directory's files that consist of a few lines.
const smallFile = 4096
