package disklog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog/durable"
	"github.com/contextd/contextd/internal/log/disklog/salvage"
)

const (
	// repairTemp is the directory in which a store is rebuilt, and repairedDir the directory of the whole one.
	repairTemp  = "repair.tmp"
	repairedDir = "repaired"
	// damagedPrefix begins the name of the directory into which a repair moves the damaged files.
	damagedPrefix = "damaged-"
)

// Repair is the report of a repair.
type Repair struct {
	// Faults say what is wrong, file by file or as a whole; empty if nothing is.
	Faults []string
	// Losses are the sessions that lose something.
	Losses []Loss
	// Whole is how many sessions lose nothing.
	Whole int
	// Strays is how many events were found that belong to no session.
	Strays int
	// Unnamed says that sessions may be lost whose ids are unknown, too.
	Unnamed bool
	// Aside is the directory with the old files; empty if they were not moved.
	Aside string
}

// Loss says what a session loses.
type Loss struct {
	Session string
	// Gone says that nothing of the session can be kept.
	Gone bool
	// Kept is the last event that is kept. If From is not 0, events From to To are lost, and perhaps newer ones.
	Kept, From, To eventlog.Seq
	// Unsure says that there may have been newer events of which no trace remains.
	Unsure bool
	// Records is how many artifacts are lost.
	Records int
	// Settings says that labels, settings and the time of creation are lost.
	Settings bool
	// Why is the first fault that was found; empty if only artifacts are lost.
	Why string
}

// NothingLeftError says that a directory has nothing from which a store could be rebuilt.
type NothingLeftError struct{ Dir, Reason string }

func (e *NothingLeftError) Error() string {
	return fmt.Sprintf("%s cannot be repaired: %s. Only a backup helps: contextd restore BACKUP %s-restored", e.Dir, e.Reason, strings.TrimRight(e.Dir, "/"))
}

// RepairDir examines a store and, if anything is wrong, rebuilds it from what can be read. No process may have its
// files open. Each session keeps its events before the first lost one. The old files are moved into a directory next
// to the new ones, whose name has the time now. With dry it changes nothing and only makes the report.
func RepairDir(ctx context.Context, dir string, opts Options, dry bool, now time.Time) (_ *Repair, err error) {
	opts = opts.withDefaults()
	opts.ReserveBytes, opts.LowBytes = 0, 0
	if err := errors.Join(refuseBackup(opts.FS, dir), refuseRestoring(opts.FS, dir), refuseCopying(opts.FS, dir, "")); err != nil {
		return nil, err
	}
	if !holdsAnything(opts.FS, dir) {
		return nil, &FormatError{Dir: dir, Reason: "it holds no event log"}
	}
	take := lockDirectory
	if dry {
		take = lockToRead
	}
	lock, err := take(opts.FS, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	r := &repairer{opts: opts, disk: opts.FS, dir: dir, now: now}
	r.temp = r.path(repairTemp)
	if dry && !Writable(dir) {
		// Only an attempt shows what would be lost, so a dry run rebuilds into a temporary directory.
		if r.temp, err = os.MkdirTemp("", "contextd-repair-*"); err != nil {
			return nil, err
		}
	}
	if _, err := r.disk.Stat(repairedFormat(r.disk, dir)); err == nil {
		r.fault("an earlier repair was interrupted before what it had rebuilt was in place")
		if dry {
			return &r.out, nil // what is in place may be less than what there is
		}
		if err := r.swap(); err != nil {
			return nil, err
		}
	}
	if err := r.examine(ctx); err != nil {
		return nil, err
	}
	if len(r.out.Faults) == 0 || r.sound {
		return &r.out, nil
	}
	defer func() { err = errors.Join(err, r.disk.RemoveAll(r.temp)) }()
	if err := r.rebuild(ctx); err != nil {
		return nil, err
	}
	if r.inForce == nil && r.out.Whole+len(r.out.Losses) == 0 {
		r.out.Unnamed = true // there were none, or all that names them is missing
	}
	if dry {
		return &r.out, nil
	}
	if err := r.disk.Rename(r.temp, r.path(repairedDir)); err != nil {
		return nil, err
	}
	return &r.out, r.swap()
}

// holdsAnything reports whether a directory has a file that may be a store's.
func holdsAnything(fs vfs.FS, dir string) bool {
	return slices.ContainsFunc([]string{formatFile, inventoryFile, encryptionFile, dataDir, repairedDir}, func(name string) bool {
		_, err := fs.Stat(fs.PathJoin(dir, name))
		return !oserror.IsNotExist(err)
	})
}

// repairer repairs a directory that is locked.
type repairer struct {
	opts Options
	disk vfs.FS
	dir  string
	temp string // where a store is rebuilt
	now  time.Time
	out  Repair
	// inForce are the tables and blob files that the manifest names; nil if the manifest cannot be trusted.
	inForce map[string]fileInForce
	// unflushed are the logs with content that is not in tables, if the manifest can be trusted.
	unflushed map[string]bool
	// gaps are ranges of keys that tables have lost.
	gaps []salvage.Gap
	// logLost says that a part of the write-ahead log is lost. It may have had the newest version of any key.
	logLost bool
	// sealed says that the store is encrypted, at least in part.
	sealed bool
	// sound says that the only thing to do is to complete an interrupted repair.
	sound bool
}

func (r *repairer) path(name string) string { return r.disk.PathJoin(r.dir, name) }

func (r *repairer) fault(format string, args ...any) {
	r.out.Faults = append(r.out.Faults, fmt.Sprintf(format, args...))
}

// swap moves the damaged store into a directory next to it, and the rebuilt one into its place. It also completes an
// interrupted swap. For that it moves the format file, without which nothing is opened as a store, away first and
// back last. Each step is durable before the next, because a power failure may keep later changes of a directory and
// lose earlier ones.
func (r *repairer) swap() error {
	aside, rebuilt := r.path(damagedPrefix+r.now.UTC().Format("20060102T150405.000Z")), r.path(repairedDir)
	if r.out.Aside != "" {
		aside += "-repaired" // what an interrupted repair had put in place is damaged as well
	}
	if err := errors.Join(durable.MakeDir(r.disk, aside), durable.SyncDir(r.disk, r.dir)); err != nil {
		return err
	}
	others := []string{dataDir, inventoryFile, encryptionFile}
	for _, step := range []struct {
		from, to string
		names    []string
	}{{r.dir, aside, []string{formatFile}}, {r.dir, aside, others}, {rebuilt, r.dir, others}, {rebuilt, r.dir, []string{formatFile}}} {
		for _, name := range step.names {
			if err := r.move(r.disk.PathJoin(step.from, name), r.disk.PathJoin(step.to, name), rebuilt, name); err != nil {
				return err
			}
		}
		for _, dir := range []string{step.to, step.from} {
			if err := durable.SyncDir(r.disk, dir); err != nil {
				return err
			}
		}
	}
	r.out.Aside = aside
	return r.disk.RemoveAll(rebuilt)
}

// move renames from to to, if from exists and the directory rebuilt still has an entry name: without one, an
// interrupted swap did this step already.
func (r *repairer) move(from, to, rebuilt, name string) error {
	if _, err := r.disk.Stat(r.disk.PathJoin(rebuilt, name)); oserror.IsNotExist(err) {
		return nil
	}
	if err := r.disk.Rename(from, to); err != nil && !oserror.IsNotExist(err) {
		return err
	}
	return nil
}
