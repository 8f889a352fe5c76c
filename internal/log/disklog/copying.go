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

// copyingFile marks the target of an unfinished copy into an empty directory. It has the source's name.
const copyingFile = "COPYING"

// refuseCopying returns an error for a directory that may have only a part of a copy, unless the copy from the same
// store goes on. from is empty if nothing is copied.
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

// markCopying makes the file, durably, that prevents the directory from being opened without Options.Copying.
func markCopying(opts Options, dir string) error {
	if err := durable.Write(opts.FS, opts.FS.PathJoin(dir, copyingFile), opts.Copying+"\n", true); err != nil {
		return err
	}
	return durable.SyncDir(opts.FS, dir)
}

// markEmpty calls markCopying if the store has no session yet.
func (s *Store) markEmpty(dir string) error {
	some, err := s.ListSessions(context.Background(), eventlog.SessionQuery{Limit: 1})
	if err != nil || len(some) > 0 {
		return err
	}
	return markCopying(s.opts, dir)
}

// Copied says that the copy into a store that was opened with Options.Copying is complete. From now on the store can
// be opened without that option, too.
func (s *Store) Copied(context.Context) error {
	dir := s.opts.FS.PathDir(s.dir)
	if err := s.opts.FS.Remove(s.opts.FS.PathJoin(dir, copyingFile)); err != nil && !oserror.IsNotExist(err) {
		return err
	}
	return durable.SyncDir(s.opts.FS, dir)
}
