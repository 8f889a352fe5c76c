package disklog

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog/durable"
)

// copyingFile is there until all of another store was copied into the directory, where the copy began with an empty one.
// It names that store.
const copyingFile = "COPYING"

// refuseCopying returns an error for a directory that may have only a part of what is copied into it, unless more is
// copied from the same store; from is empty where nothing is copied.
func refuseCopying(fs vfs.FS, dir, from string) error {
	text, err := durable.Read(fs, fs.PathJoin(dir, copyingFile), smallFile)
	began := strings.TrimSuffix(text, "\n")
	switch {
	case oserror.IsNotExist(err):
		return nil
	case err != nil:
		return err
	case from != "" && (began == from || began == ""): // it may have been killed before it wrote the name
		return nil
	}
	return &FormatError{Dir: dir, Reason: fmt.Sprintf("a copy of %s into it is under way or was interrupted: contextd copy goes on with it", cmp.Or(began, "another store"))}
}

// markCopying makes, durably, the file that keeps others from opening the directory.
func markCopying(opts Options, dir string) error {
	if err := durable.Write(opts.FS, opts.FS.PathJoin(dir, copyingFile), opts.Copying+"\n", true); err != nil {
		return err
	}
	return durable.SyncDir(opts.FS, dir)
}

// markEmpty is markCopying where there is no session yet.
func (s *Store) markEmpty(dir string) error {
	some, err := s.ListSessions(context.Background(), eventlog.SessionQuery{Limit: 1})
	if err != nil || len(some) > 0 {
		return err
	}
	return markCopying(s.opts, dir)
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
