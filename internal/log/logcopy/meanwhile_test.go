package logcopy_test

import (
	"context"
	"errors"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logcopy"
	"github.com/contextd/contextd/internal/log/memlog"
)

// meanwhile is a store in which another copy makes each session, and appends its events, just before this one does.
type meanwhile struct {
	eventlog.Store
	from eventlog.Store
	make bool
}

func (m meanwhile) other(ctx context.Context) error {
	_, err := logcopy.Copy(ctx, m.from, m.Store, logcopy.Options{})
	return err
}

func (m meanwhile) CreateSession(ctx context.Context, s eventlog.Session) (eventlog.Session, error) {
	if m.make {
		if err := m.other(ctx); err != nil {
			return s, err
		}
	}
	return m.Store.CreateSession(ctx, s)
}

func (m meanwhile) Append(ctx context.Context, id string, b eventlog.Batch) (eventlog.Commit, error) {
	if err := m.other(ctx); err != nil {
		return nil, err
	}
	b.Events[0].ID += " of another"
	return m.Store.Append(ctx, id, b)
}

// TestTwoCopiesAtOnce: the error names what ends a copy, and the next copy is whole.
func TestTwoCopiesAtOnce(t *testing.T) {
	source := memlog.New()
	appendTo(t, source, "s", 1, "a")
	for _, makes := range []bool{true, false} {
		target := memlog.New()
		_, err := logcopy.Copy(t.Context(), source, meanwhile{target, source, makes}, logcopy.Options{})
		if !errors.As(err, new(*logcopy.MeanwhileError)) {
			t.Errorf("%v", err)
		}
		if r, err := logcopy.Copy(t.Context(), source, target, logcopy.Options{}); err != nil || r.Events != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	}
}
