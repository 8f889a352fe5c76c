package auth

import (
	"bytes"
	"context"
	"fmt"
	"github.com/contextd/contextd/internal/memory"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
)

// file is what was read from one or more files, and follows their changes.
type file[T any] struct {
	setting string
	paths   []string
	parse   func(contents ...[]byte) (T, error)
	value   atomic.Pointer[T]

	mu   sync.Mutex // held while they are read, and guards what follows
	last []byte
	// failed is set while they are wrong, so that this is reported once.
	failed bool
}

// reloader is a file of any content.
type reloader interface {
	reload(ctx context.Context, logger *slog.Logger)
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
	if f.value.Load() != nil && bytes.Equal(all, f.last) {
		return false, nil
	}
	value, err := f.parse(contents...)
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
	switch {
	case err != nil && !f.failed:
		logger.ErrorContext(ctx, "a file was not reloaded; what was read before stays in force", "setting", f.setting, "error", err)
	case changed:
		logger.InfoContext(ctx, "a file was reloaded", "setting", f.setting, "files", f.paths)
	}
	f.failed = err != nil
}
