package logcopy_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logcopy"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/memlog"
)

// damaged is a store that cannot read one session's events, or not even the session.
type damaged struct {
	eventlog.Store
	id     string
	listed bool // as damaged
}

func (d damaged) corrupt(id string) error {
	if id != d.id {
		return nil
	}
	return &eventlog.CorruptError{Session: id, What: "event 1", Reason: "its checksum differs"}
}

func (d damaged) Session(ctx context.Context, id string) (eventlog.Session, error) {
	if err := d.corrupt(id); d.listed && err != nil {
		return eventlog.Session{}, err
	}
	return d.Store.Session(ctx, id)
}

func (d damaged) ListSessions(ctx context.Context, q eventlog.SessionQuery) ([]eventlog.Session, error) {
	all, err := d.Store.ListSessions(ctx, q)
	all = slices.Clone(all)
	for i := range all {
		all[i].Damaged = d.listed && all[i].ID == d.id
	}
	return all, err
}

func (d damaged) Read(ctx context.Context, id string, from, to eventlog.Seq) iter.Seq2[eventlog.Event, error] {
	if err := d.corrupt(id); err != nil {
		return func(yield func(eventlog.Event, error) bool) { yield(eventlog.Event{}, err) }
	}
	return d.Store.Read(ctx, id, from, to)
}

// verifying is a damaged store with a hash chain that shows it.
type verifying struct{ damaged }

func (v verifying) Verify(_ context.Context, id string) error { return v.corrupt(id) }

// TestPart: sessions that cannot be read are named, with their forks, and all others are copied.
func TestPart(t *testing.T) {
	whole := memlog.New()
	fill(t, whole)
	for _, c := range []struct {
		name string
		from eventlog.Store
		fail string // the sessions that are not copied
		late bool   // to be forked from a parent that is deleted, whose id another session has in the target
	}{
		{"no fork", verifying{damaged{whole, "~tenant/a", false}}, "~tenant/a", false},
		{"no fork, found when read", damaged{whole, "~tenant/a", false}, "~tenant/a", false},
		{"no fork, listed as damaged", damaged{whole, "~tenant/a", true}, "~tenant/a", false},
		{"a parent", verifying{damaged{whole, "gone", false}}, "gone, of another", false},
		{"a parent, listed as damaged", damaged{whole, "gone", true}, "gone, of another", false},
		{"forked from what is deleted", verifying{damaged{whole, "w1", false}}, "v1, w1", true},
		{"the longest such fork", verifying{damaged{whole, "x1", false}}, "x1", true},
		{"such a fork, found when read", damaged{whole, "w1", false}, "v1, w1", true},
		{"the only such fork, found when read", damaged{whole, "~tenant/c", false}, "~tenant/c", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := memlog.New()
			report, err := logcopy.Copy(t.Context(), c.from, target, logcopy.Options{})
			part, ok := errors.AsType[*logcopy.PartError](err)
			if !ok {
				t.Fatal(err)
			}
			failed := strings.Split(c.fail, ", ")
			named := part.Unwrap()
			want := show(t, whole)
			for i, id := range failed {
				want = without(want, id)
				if i >= len(named) || !strings.HasPrefix(named[i].Error(), `session "`+id+`"`) {
					t.Errorf("%d of %q is not %q", i, named, id)
				}
			}
			copied := show(t, target)
			for _, id := range failed {
				copied = without(copied, id) // it may be there in part
			}
			if diff := logtest.Diff(want, copied); diff != "" || len(named) != len(failed) || report.Sessions != uint64(len(want)) {
				t.Errorf("%+v, %q (-source +target):\n%s", report, named, diff)
			}
			if c.late {
				return
			}
			if _, err := logcopy.Copy(t.Context(), whole, target, logcopy.Options{}); err != nil {
				t.Error(err)
			}
			if diff := logtest.Diff(show(t, whole), show(t, target)); diff != "" {
				t.Errorf("after a repair (-source +target):\n%s", diff)
			}
		})
	}
}
