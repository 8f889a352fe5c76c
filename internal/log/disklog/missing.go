package disklog

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// MissingError says that a directory has less than the store wrote there. The store was not opened, and nothing in
// the directory was changed.
type MissingError struct {
	Dir string
	// Missing describes each fault in a clause.
	Missing []string
	// logs are the files of the write-ahead log that are missing, cut or altered, if nothing else is.
	logs []string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s holds less than the event log wrote there, and nothing in it was changed: %s. Put back what is missing, restore a backup, or have what is left made a store again: contextd repair --data-dir %s --dry-run",
		e.Dir, strings.Join(e.Missing, "; "), e.Dir)
}

// recall compares the directory with its inventory before the database is opened. It returns what the inventory must
// claim from now on, or *MissingError.
func (s *Store) recall(dir string) (counted, error) {
	disk := s.opts.FS
	known, found, valid, err := readInventory(disk, dir)
	if err != nil {
		return counted{}, err
	}
	if found && !valid {
		s.logger.Warn("the inventory of the event log is damaged: whether a log file is missing is not known", "file", inventoryFile)
	}
	l := &look{disk: disk, dir: disk.PathJoin(dir, dataDir)}
	now, err := l.at(known, valid)
	if err == nil && l.newer && len(l.logs) > 0 {
		s.dropUnneeded(l)
	}
	if err == nil && len(l.missing) > 0 {
		err = &MissingError{Dir: dir, Missing: l.missing, logs: l.logs}
	}
	return now, err
}

// dropUnneeded removes log files from the list of missing files if all their content was in tables before they were
// removed. The manifest shows that if it is newer than the inventory. If the manifest cannot be read, opening the
// database reports that later.
func (s *Store) dropUnneeded(l *look) {
	_, unflushed, err := s.filesInForce(l.logs)
	var missing, logs []string
	for i, log := range l.logs {
		if err == nil && unflushed[log] {
			missing, logs = append(missing, l.missing[i]), append(logs, log)
		}
	}
	l.missing, l.logs = missing, logs
}

// look compares the database's files with an inventory.
type look struct {
	disk    vfs.FS
	dir     string
	missing []string
	logs    []string // the missing log files, if nothing else is missing
	newer   bool     // the manifest is newer than the inventory
	// fragments is set if the directory has files that only a database with content has.
	fragments bool
}

func (l *look) miss(format string, args ...any) {
	l.missing = append(l.missing, fmt.Sprintf(format, args...))
}

func (l *look) at(known counted, valid bool) (now counted, err error) {
	newest, formats, err := l.markers()
	switch {
	case oserror.IsNotExist(err):
		if !valid || known.manifest.number > 0 {
			l.miss("the directory %s is missing", dataDir)
		}
		return counted{}, nil
	case err != nil:
		return counted{}, err
	case newest == 0 && valid && known.manifest.number == 0 && !l.fragments:
		return counted{}, nil // the first opening was interrupted
	case newest == 0:
		l.miss("%s/%s* is missing, which names the manifest in force%s", dataDir, manifestMarker, named(known.manifest.number))
		return counted{}, nil
	case newest < known.manifest.number:
		l.miss("%s/%s* of %s is missing; the newest names %s", dataDir, manifestMarker, manifestName(known.manifest.number), manifestName(newest))
		return counted{}, nil
	}
	if formats == 0 && l.fragments {
		l.miss("%s/%s* is missing, which names the database's format", dataDir, formatMarker)
	}
	now.manifest, err = l.measure(manifestName(newest))
	if err != nil || now.manifest.length < 0 {
		return counted{}, err
	}
	now.manifest.number = newest
	l.newer = known.manifest.number != newest // a crash came after the inventory, or a program that keeps none used the store
	if !l.newer {
		if err := l.compare(manifestName(newest), known.manifest); err != nil {
			return counted{}, err
		}
		l.newer = now.manifest.length != known.manifest.length
	}
	if !l.newer {
		now.generation, now.logs = known.generation, known.logs
	}
	trusted := len(l.missing) == 0
	if l.newer && !trusted {
		return now, nil // an incomplete manifest cannot say which logs there must be
	}
	for _, number := range slices.Sorted(maps.Keys(known.logs)) {
		name, before := fmt.Sprintf("%06d.log", number), len(l.missing)
		if err := l.compare(name, known.logs[number]); err != nil {
			return counted{}, err
		}
		if trusted && len(l.missing) > before {
			l.logs = append(l.logs, name)
		}
	}
	return now, nil
}

func manifestName(number uint64) string { return fmt.Sprintf("MANIFEST-%06d", number) }

func named(manifest uint64) string {
	if manifest == 0 {
		return ""
	}
	return ", " + manifestName(manifest)
}

// markers returns the manifest that the newest marker names, and how many markers
// of the database's format there are.
func (l *look) markers() (newest uint64, formats int, err error) {
	names, err := l.disk.List(l.dir)
	if err != nil {
		return 0, 0, err
	}
	var last uint64
	for _, name := range names {
		name = l.disk.PathBase(name)
		if turn, number, ok := markedManifest(name); ok && turn >= last {
			last, newest = turn, number
		}
		if strings.HasPrefix(name, formatMarker) {
			formats++
		}
		switch isLog, _, _ := kindOf(name); {
		case strings.HasSuffix(name, tableSuffix), strings.HasSuffix(name, blobSuffix):
			l.fragments = true
		case isLog:
			info, err := l.disk.Stat(l.disk.PathJoin(l.dir, name))
			if err != nil {
				return 0, 0, err
			}
			l.fragments = l.fragments || info.Size() > 0
		}
	}
	return newest, formats, nil
}

// measure returns the length of a file and the checksum over all of it. The length is negative if the file is
// missing.
func (l *look) measure(name string) (extent, error) {
	length, sum, err := l.sum(name, 1<<62)
	if oserror.IsNotExist(err) {
		l.miss("%s/%s is missing", dataDir, name)
		return extent{length: -1}, nil
	}
	return extent{length: length, sum: sum}, err
}

// compare checks that a file begins with the known bytes.
func (l *look) compare(name string, known extent) error {
	length, sum, err := l.sum(name, known.length)
	switch {
	case oserror.IsNotExist(err):
		l.miss("%s/%s is missing, with %d bytes that were acknowledged", dataDir, name, known.length)
	case err != nil:
		return err
	case length < known.length:
		l.miss("%s/%s is cut off after %d of %d bytes that were acknowledged", dataDir, name, length, known.length)
	case sum != known.sum:
		l.miss("%s/%s is damaged: its first %d bytes are not what was written", dataDir, name, known.length)
	}
	return nil
}

// sum reads up to limit bytes of a file.
func (l *look) sum(name string, limit int64) (length int64, sum uint32, err error) {
	f, err := l.disk.Open(l.disk.PathJoin(l.dir, name))
	if err != nil {
		return 0, 0, err
	}
	h := crc32.New(castagnoli)
	length, err = io.Copy(h, io.LimitReader(f, limit))
	return length, h.Sum32(), errors.Join(err, f.Close())
}

// peekFS is a database whose log files appear empty. It records which of them Pebble opens to replay.
type peekFS struct {
	readFS
	logs     []string // names of missing log files, shown as if they were present
	replayed map[string]bool
}

// List lists a directory.
func (fs peekFS) List(dir string) ([]string, error) {
	names, err := fs.readFS.List(dir)
	names = append(names, fs.logs...)
	slices.Sort(names)
	return slices.Compact(names), err
}

// Open opens a file.
func (fs peekFS) Open(path string, opts ...vfs.OpenOption) (vfs.File, error) {
	name := fs.PathBase(path)
	if isLog, _, _ := kindOf(name); !isLog {
		return fs.FS.Open(path, opts...)
	}
	fs.replayed[name] = true
	return vfs.NewMem().Create(name, vfs.WriteCategoryUnspecified)
}

// Stat describes a file.
func (fs peekFS) Stat(path string) (vfs.FileInfo, error) {
	if slices.Contains(fs.logs, fs.PathBase(path)) {
		path = fs.PathDir(path) // the directory's size replaces that of a missing log
	}
	return fs.FS.Stat(path)
}

// checkFiles compares tables and blob files with the manifest. A missing or truncated table is an error. Missing or
// truncated blob files are recorded: the values in them are lost, and other sessions are served.
func (s *Store) checkFiles(dir string) error {
	inForce, _, err := s.filesInForce(nil)
	if err != nil {
		return s.refused(dir, err)
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(inForce)) {
		wrong, err := s.wrongSize(name, inForce[name].size)
		switch {
		case err != nil:
			return err
		case wrong == "":
		case isBlob(name):
			s.disk.lost = append(s.disk.lost, name)
			s.disk.damage.note(name, "it "+wrong)
		default:
			missing = append(missing, dataDir+"/"+name+" "+wrong)
		}
	}
	if len(missing) > 0 {
		return &MissingError{Dir: dir, Missing: missing}
	}
	return nil
}

// fileInForce has what the manifest says of a file; for a table, also its first and last key.
type fileInForce struct {
	size        uint64
	first, last []byte
}

// filesInForce returns the tables and blob files that the manifest names, and which log files have content that is in
// no table yet. logs are missing log files to consider in addition to those in the directory.
func (s *Store) filesInForce(logs []string) (files map[string]fileInForce, unflushed map[string]bool, err error) {
	peek := peekFS{readFS{s.opts.FS}, logs, map[string]bool{}}
	options := s.pebbleOptions()
	options.FS = peek
	options.ReadOnly, options.DisableConsistencyCheck = true, true
	options.CacheSize = 1 // nothing is read
	options.EventListener = nil
	db, err := pebble.Open(s.dir, options)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	files = map[string]fileInForce{}
	version := db.DebugCurrentVersion()
	for _, level := range version.Levels {
		for table := range level.All() {
			bounds := table.UserKeyBounds()
			files[table.TableBacking.DiskFileNum.String()+tableSuffix] = fileInForce{table.TableBacking.Size, bytes.Clone(bounds.Start), bytes.Clone(bounds.End.Key)}
		}
	}
	for file := range version.BlobFiles.All() {
		files[file.Physical.FileNum.String()+blobSuffix] = fileInForce{size: file.Physical.Size}
	}
	return files, peek.replayed, nil
}

// wrongSize returns what is wrong with a file that should have this size; empty if nothing is.
func (s *Store) wrongSize(name string, size uint64) (string, error) {
	info, err := s.opts.FS.Stat(s.opts.FS.PathJoin(s.dir, name))
	switch {
	case oserror.IsNotExist(err):
		return "is missing", nil
	case err != nil:
		return "", err
	case uint64(info.Size()) != size:
		return fmt.Sprintf("has %d bytes instead of %d", info.Size(), size), nil
	}
	return "", nil
}

// refused returns the error for a database that Pebble did not open.
func (s *Store) refused(dir string, err error) error {
	if isDamage(err) {
		return &FormatError{Dir: dir, Reason: "its database is damaged and cannot be opened: restore a backup, or try contextd repair (" + reasonOf(err) + ")"}
	}
	return fmt.Errorf("open %s: %w", s.dir, err)
}
