package tenantlog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/log/tenantlog"
)

// The neighbours of a tenant have sessions whose ids are next to its own in the store.
var neighbours = []string{"", "t", "t.0", "t-2", "T1", "t10"}

// crowded is the view of t1 in a store that others use, too.
func crowded(t testing.TB, store eventlog.Store) eventlog.Store {
	t.Helper()
	for _, name := range neighbours {
		for _, id := range []string{"a", "s", "zz"} {
			say(t, tenantlog.Of(store, name), id, "secret")
		}
	}
	return tenantlog.Of(store, "t1")
}

func say(t testing.TB, store eventlog.Store, id, event string) {
	t.Helper()
	c, err := store.Append(t.Context(), id, eventlog.Batch{Events: []eventlog.Event{logtest.Say(event)}, Time: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A view is a store like any other, whoever else uses the store that it is a view of.
func TestViewIsAStore(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		logtest.Run(t, func(t testing.TB) eventlog.Store { return crowded(t, memlog.New()) })
	})
	t.Run("disk", func(t *testing.T) {
		logtest.Run(t, func(t testing.TB) eventlog.Store {
			store, err := disklog.Open(t.TempDir(), disklog.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return crowded(t, store)
		})
	})
}

func list(t *testing.T, store eventlog.Store, q eventlog.SessionQuery) (ids []string) {
	t.Helper()
	all, err := store.ListSessions(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		ids = append(ids, s.ID)
	}
	return ids
}

func TestViewsAreApart(t *testing.T) {
	store := memlog.New()
	mine := crowded(t, store)
	say(t, mine, "mine", "one")
	if _, err := mine.Fork(t.Context(), eventlog.ForkRequest{ParentID: "mine", At: 1, NewID: "fork"}); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		tenant string
		query  eventlog.SessionQuery
		want   []string
	}{
		"mine":                      {"t1", eventlog.SessionQuery{}, []string{"fork", "mine"}},
		"a page of mine":            {"t1", eventlog.SessionQuery{After: "fork", Limit: 5}, []string{"mine"}},
		"mine before":               {"t1", eventlog.SessionQuery{Before: "m"}, []string{"fork"}},
		"no tenant's":               {"", eventlog.SessionQuery{}, []string{"a", "s", "zz"}},
		"no tenant's, forged":       {"", eventlog.SessionQuery{After: "~t1/"}, nil},
		"no tenant's, forged bound": {"", eventlog.SessionQuery{Before: "~z"}, []string{"a", "s", "zz"}},
		"a neighbour's":             {"t", eventlog.SessionQuery{}, []string{"a", "s", "zz"}},
		"a neighbour's, forged":     {"t", eventlog.SessionQuery{After: "zzz"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := list(t, tenantlog.Of(store, test.tenant), test.query); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	fork, err := mine.Session(t.Context(), "fork")
	if err != nil || fork.ParentID != "mine" {
		t.Errorf("the fork's parent is %q, %v", fork.ParentID, err)
	}
	_, err = mine.Session(t.Context(), "zz")
	if missing, ok := errors.AsType[*eventlog.NotFoundError](err); !ok || missing.Name != "zz" {
		t.Errorf("a neighbour's session: %v", err)
	}
}

// Who is no tenant cannot name a tenant's session by the id that it has in the store.
func TestStoredIDsAreNoNames(t *testing.T) {
	store := memlog.New()
	say(t, tenantlog.Of(store, "t1"), "mine", "one")
	none := tenantlog.Of(store, "")
	if _, err := none.Session(t.Context(), "~t1/mine"); err == nil {
		t.Error("it is found")
	}
	if _, err := none.Append(t.Context(), "~t1/new", eventlog.Batch{Events: []eventlog.Event{logtest.Say("x")}}); err == nil {
		t.Error("it is appended to")
	}
	if _, err := none.Fork(t.Context(), eventlog.ForkRequest{ParentID: "~t1/mine", NewID: "x"}); err == nil {
		t.Error("it is forked")
	}
	for _, err := range none.Read(t.Context(), "~t1/mine", 1, 0) {
		if err == nil {
			t.Error("it is read")
		}
	}
}

// Sessions of no tenant have the ids in the store that they always had.
func TestNoTenantChangesNothing(t *testing.T) {
	store := memlog.New()
	say(t, tenantlog.Of(store, ""), "a/b", "one")
	if s, err := store.Session(t.Context(), "a/b"); err != nil || s.Head != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestValidName(t *testing.T) {
	for name, valid := range map[string]bool{
		"a": true, "team-a": true, "0x": true, "a.b@c": true, "": false, "~a": false, "a/b": false, "-a": false, "ä": false, "a b": false,
		fmt.Sprintf("%064d", 0): true, fmt.Sprintf("%065d", 0): false,
	} {
		if tenantlog.ValidName(name) != valid {
			t.Errorf("%q: want valid %t", name, valid)
		}
	}
}

// failing is a store whose sessions cannot be looked at, as others' writes and damage make them.
type failing struct {
	eventlog.Store
	err func(id string) error
}

func (f failing) Session(_ context.Context, id string) (eventlog.Session, error) {
	return eventlog.Session{}, f.err(id)
}

// TestErrorsHaveTheViewsIDs: no error shows the id that a session has in the store.
func TestErrorsHaveTheViewsIDs(t *testing.T) {
	for _, err := range []func(id string) error{
		func(id string) error { return &eventlog.NotFoundError{Kind: "session", Name: id} },
		func(id string) error { return &eventlog.ExistsError{Kind: "session", Name: id} },
		func(id string) error { return &eventlog.ConflictError{Session: id, What: "the batch"} },
		func(id string) error { return &eventlog.LostError{Session: id, Known: 3, Head: 2} },
		func(id string) error {
			return &eventlog.CorruptError{Session: id, What: "event 1", Reason: "it is missing"}
		},
	} {
		_, got := tenantlog.Of(failing{memlog.New(), err}, "t1").Session(t.Context(), "s")
		if want := err("s"); got == nil || got.Error() != want.Error() {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
