package auth

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/contextd/contextd/internal/memory"
)

// file is what was read from one or more files, and follows their changes.
type file[T any] struct {
	setting string
	paths   []string
	parse   func(contents ...[]byte) (T, error)
	// replaces, if set, refuses what is read later and is no better than what is in force.
	replaces func(T) error
	value    atomic.Pointer[T]
	wrong    atomic.Bool // since they were last read

	mu   sync.Mutex // held while they are read, and guards what follows
	last []byte
	// empty is set where one of them was empty, as a file is for a moment that is being
	// written. It counts when it is found so again.
	empty bool
	// reported is what was last reported to be wrong, so that it is once; "" while nothing is.
	reported string
}

// reloader is a file of any content.
type reloader interface {
	reload(ctx context.Context, logger *slog.Logger)
	well() bool
}

// open reads files, for a setting that errors name.
func open[T any](setting string, parse func(contents ...[]byte) (T, error), paths ...string) (*file[T], error) {
	f := &file[T]{setting: setting, paths: paths, parse: parse}
	_, err := f.read()
	return f, err
}

func (f *file[T]) get() T { return *f.value.Load() }

// read takes the files over if they have changed. The caller holds mu, if others may read.
func (f *file[T]) read() (changed bool, err error) {
	contents := make([][]byte, len(f.paths))
	for i, path := range f.paths {
		if contents[i], err = memory.ReadFile(path); err != nil {
			return false, fmt.Errorf("%s: %w", f.setting, err)
		}
	}
	all := bytes.Join(contents, []byte{0})
	first := f.value.Load() == nil
	if !first && bytes.Equal(all, f.last) {
		f.empty = false
		return false, nil
	}
	foundEmpty := f.empty
	f.empty = slices.ContainsFunc(contents, func(c []byte) bool { return len(bytes.TrimSpace(c)) == 0 })
	if f.empty && !foundEmpty && !first {
		return false, nil
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

func (f *file[T]) reload(ctx context.Context, logger *slog.Logger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed, err := f.read()
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

// well reports whether what the files hold is in force.
func (f *file[T]) well() bool { return !f.wrong.Load() }
