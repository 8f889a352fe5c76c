package disklog

import (
	"context"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog/durable"
)

// copyingFile is there until all of another store was copied into the directory, where the copy began with an empty one.
const copyingFile = "COPYING"

// refuseCopying returns an error for a directory that may have only a part of what is copied into it.
func refuseCopying(fs vfs.FS, dir string) error {
	if _, err := fs.Stat(fs.PathJoin(dir, copyingFile)); !oserror.IsNotExist(err) {
		return &FormatError{Dir: dir, Reason: "a copy into it is under way or was interrupted: the same contextd copy goes on with it"}
	}
	return nil
}

// markCopying makes, durably, the file that keeps others from opening the directory.
func markCopying(fs vfs.FS, dir string) error {
	if err := durable.Write(fs, fs.PathJoin(dir, copyingFile), "A copy into this directory is under way, or was interrupted.\n", false); err != nil {
		return err
	}
	return durable.SyncDir(fs, dir)
}

// markEmpty is markCopying where there is no session yet.
func (s *Store) markEmpty(dir string) error {
	some, err := s.ListSessions(context.Background(), eventlog.SessionQuery{Limit: 1})
	if err != nil || len(some) > 0 {
		return err
	}
	return markCopying(s.opts.FS, dir)
}

// Copied says that all was copied into a store that was opened with Options.Copying: from now on it is opened without,
// too.
func (s *Store) Copied(context.Context) error {
	dir := s.opts.FS.PathDir(s.dir)
	if err := s.opts.FS.Remove(s.opts.FS.PathJoin(dir, copyingFile)); err != nil && !oserror.IsNotExist(err) {
		return err
	}
	return durable.SyncDir(s.opts.FS, dir)
}
