package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/contextd/contextd/internal/memory"
)

// file is the parsed content of one or more files, which reload updates.
type file[T any] struct {
	setting string
	paths   []string
	parse   func(contents ...[]byte) (T, error)
	// replaces, if set, returns an error for a new value that must not replace the one in force.
	replaces func(T) error
	value    atomic.Pointer[T]
	wrong    atomic.Bool // the last reload failed

	mu sync.Mutex // held while the files are read; guards the fields below
	// last is the content in force, and seen what the last check found.
	last, seen []byte
	// reported is the error that was logged last, so that it is logged once; "" if there is none.
	reported string
}

// reloader is a file with any type of value.
type reloader interface {
	reload(ctx context.Context, logger *slog.Logger, atOnce bool)
	well() bool
}

// open reads files. Errors name the setting.
func open[T any](setting string, parse func(contents ...[]byte) (T, error), paths ...string) (*file[T], error) {
	f := &file[T]{setting: setting, paths: paths, parse: parse}
	_, err := f.read(true)
	return f, err
}

// errChanging reports that files have changed since the last check.
var errChanging = errors.New("the files are perhaps being written")

func (f *file[T]) get() T { return *f.value.Load() }

// read replaces the value if the files have changed. Unless atOnce, it does so only if the last check found the same
// content: a file that is still being written may be valid and incomplete. The caller holds mu, unless it is the only
// user.
func (f *file[T]) read(atOnce bool) (changed bool, err error) {
	contents := make([][]byte, len(f.paths))
	for i, path := range f.paths {
		if contents[i], err = memory.ReadFile(path); err != nil {
			return false, fmt.Errorf("%s: %w", f.setting, err)
		}
	}
	all := bytes.Join(contents, []byte{0})
	settled := atOnce || bytes.Equal(all, f.seen)
	f.seen = all
	first := f.value.Load() == nil
	if !first && bytes.Equal(all, f.last) {
		return false, nil
	}
	if !settled {
		return false, errChanging
	}
	value, err := f.parse(contents...)
	if err == nil && !first && f.replaces != nil {
		err = f.replaces(value)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %s: %w", f.setting, strings.Join(f.paths, ", "), err)
	}
	f.last = all
	f.value.Store(&value)
	return true, nil
}

func (f *file[T]) reload(ctx context.Context, logger *slog.Logger, atOnce bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed, err := f.read(atOnce)
	if errors.Is(err, errChanging) {
		return
	}
	f.wrong.Store(err != nil)
	switch {
	case err != nil:
		if text := err.Error(); text != f.reported {
			f.reported = text
			logger.ErrorContext(ctx, "a file was not reloaded; what was read before stays in force", "setting", f.setting, "error", err)
		}
		return
	case changed:
		logger.InfoContext(ctx, "a file was reloaded", "setting", f.setting, "files", f.paths)
	case f.reported != "":
		logger.InfoContext(ctx, "a file is again as it is in force", "setting", f.setting, "files", f.paths)
	}
	f.reported = ""
}

// well reports whether the present content of the files is in force.
func (f *file[T]) well() bool { return !f.wrong.Load() }
