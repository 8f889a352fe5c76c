package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
)

func second() time.Time { return time.Unix(1, 0).UTC() }

// journal is one over a store that has the sessions s and t.
func journal(t *testing.T, store eventlog.Store) *lifecycle.Journal {
	t.Helper()
	for _, id := range []string{"s", "t"} {
		create(t, store, id)
	}
	return lifecycle.NewJournal(store, lifecycle.NewBus(lifecycle.BusOptions{}), second)
}

func create(t *testing.T, store eventlog.Store, id string) {
	t.Helper()
	if _, err := store.CreateSession(t.Context(), eventlog.Session{ID: id, CreateTime: second()}); err != nil {
		t.Fatal(err)
	}
}

func incarnationName(t *testing.T, store eventlog.Store, id string) string {
	t.Helper()
	session, err := store.Session(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return session.IncarnationName()
}

func put(t *testing.T, j *lifecycle.Journal, session string, what ...lifecycle.Type) {
	t.Helper()
	e := lifecycle.Entry{SessionID: session}
	for _, w := range what {
		e.Events = append(e.Events, lifecycle.Happened(w))
	}
	if err := j.Put(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

func watch(t *testing.T, j *lifecycle.Journal, sessions []string, after ...lifecycle.Cursor) *lifecycle.Watch {
	t.Helper()
	w, err := j.Watch(t.Context(), sessions, after)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// take reads n events of a watch, as "session number type".
func take(t *testing.T, w *lifecycle.Watch, n int) (got []string) {
	t.Helper()
	for e, err := range w.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, fmt.Sprint(e.SessionID, " ", e.Number, " ", e.Type)); len(got) == n {
			break
		}
	}
	return got
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// What is stored with events is there with them, or neither is.
func TestEventsAreStoredWithWhatTheyReport(t *testing.T) {
	store := memlog.New()
	j := journal(t, store)
	live := watch(t, j, nil)
	conflicts := eventlog.Artifact{Kind: "k", ID: "taken", New: true}
	if err := store.PutArtifacts(t.Context(), "s", conflicts); err != nil {
		t.Fatal(err)
	}
	var order []string
	entry := lifecycle.Entry{
		SessionID: "s", Events: []lifecycle.Event{lifecycle.Happened("a")}, Artifacts: []eventlog.Artifact{{Kind: "k", ID: "fresh"}, conflicts},
		Durable: func() { order = append(order, "durable") },
	}
	var conflict *eventlog.ConflictError
	if err := j.Put(t.Context(), entry); !errors.As(err, &conflict) || order != nil {
		t.Fatalf("%v, %q", err, order)
	}
	if _, err := store.Artifact(t.Context(), "s", "k", 0, "fresh"); err == nil {
		t.Error("half of it was stored")
	}
	entry.Artifacts = entry.Artifacts[:1]
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Put(ended, entry); !errors.Is(err, context.Canceled) || order != nil {
		t.Errorf("%v, %q", err, order)
	}
	if err := j.Put(t.Context(), entry); err != nil || len(order) != 1 {
		t.Errorf("%v, %q", err, order)
	}
	of, err := store.Session(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	said := eventlog.Event{ID: "1", Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: "x"}}}}
	appendAs := func(of eventlog.Incarnation) ([]eventlog.Receipt, error) {
		return j.Append(t.Context(), lifecycle.Entry{SessionID: "s", Of: of, Events: []lifecycle.Event{lifecycle.Happened("b")}}, eventlog.Batch{Events: []eventlog.Event{said}, Time: second()})
	}
	var missing *eventlog.NotFoundError
	if _, err := appendAs(of.Incarnation + 1); !errors.As(err, &missing) {
		t.Error(err)
	}
	for range 2 { // the second is a duplicate, which reports nothing
		if got, err := appendAs(of.Incarnation); err != nil || got[0].Seq != 1 {
			t.Errorf("%v, %v", got, err)
		}
	}
	put(t, j, "s", "c")
	same(t, "stored", take(t, watch(t, j, nil, lifecycle.Cursor{SessionID: "s"}), 3), "s 1 a", "s 2 b", "s 3 c")
	same(t, "announced", take(t, live, 3), "s 1 a", "s 2 b", "s 3 c")
}

// A watch of named sessions goes on after its cursor, and where a session is deleted and
// created again, from the beginning.
func TestWatchFromACursor(t *testing.T) {
	store := memlog.New()
	j := journal(t, store)
	put(t, j, "s", "a", "b", "c")
	put(t, j, "t", "d")
	first := incarnationName(t, store, "s")
	w := watch(t, j, []string{"s", "t"}, lifecycle.Cursor{SessionID: "s", Number: 1, Incarnation: first})
	same(t, "from the first on", take(t, w, 2), "s 2 b", "s 3 c")
	put(t, j, "t", "e")
	same(t, "from now on", take(t, w, 1), "t 2 e")
	if _, err := store.Fork(t.Context(), eventlog.ForkRequest{ParentID: "s", NewID: "fork", Time: second()}); err != nil {
		t.Fatal(err)
	}
	put(t, j, "fork", "f")
	same(t, "a fork's own", take(t, watch(t, j, []string{"fork"}, lifecycle.Cursor{SessionID: "fork"}), 1), "fork 1 f")
	if err := store.DeleteSession(t.Context(), "s", 0, nil); err != nil {
		t.Fatal(err)
	}
	create(t, store, "s")
	put(t, j, "s", "g")
	same(t, "another session", take(t, w, 1), "s 1 g")
	same(t, "another session's cursor", take(t, watch(t, j, nil, lifecycle.Cursor{SessionID: "s", Incarnation: incarnationName(t, store, "s")}), 1), "s 1 g")
	for _, c := range []lifecycle.Cursor{{SessionID: "s", Number: 1, Incarnation: first}, {SessionID: "never", Incarnation: first}} {
		_, err := j.Watch(t.Context(), nil, []lifecycle.Cursor{{SessionID: "t"}, c})
		if lost, ok := errors.AsType[*lifecycle.LostError](err); !ok || lost.Field != "after[1].incarnation" || lost.SessionID != c.SessionID {
			t.Errorf("a cursor of the session that is gone: %v", err)
		}
	}
	unborn := watch(t, j, []string{"unborn"})
	create(t, store, "unborn")
	put(t, j, "unborn", "h")
	same(t, "a later session", take(t, unborn, 1), "unborn 1 h")
}

// An event, announced or read, names the session that it is of, not another with the same id.
func TestEventsNameTheirIncarnation(t *testing.T) {
	store := memlog.New()
	j := journal(t, store)
	live := watch(t, j, nil)
	incarnations := map[string]bool{}
	for range 2 {
		put(t, j, "s", "a")
		want := incarnationName(t, store, "s")
		incarnations[want] = true
		for name, w := range map[string]*lifecycle.Watch{
			"announced": live, "read": watch(t, j, nil, lifecycle.Cursor{SessionID: "s", Incarnation: want}),
		} {
			for e, err := range w.Events(t.Context()) {
				if err != nil || e.Incarnation != want {
					t.Errorf("%s: of %q, %v; want %q", name, e.Incarnation, err, want)
				}
				break
			}
		}
		if err := store.DeleteSession(t.Context(), "s", 0, nil); err != nil {
			t.Fatal(err)
		}
		create(t, store, "s")
	}
	if len(incarnations) != 2 {
		t.Errorf("the sessions are %v", incarnations)
	}
}

// A watcher that is slow misses nothing of a session that it names.
func TestASlowWatchOfANamedSession(t *testing.T) {
	store := memlog.New()
	create(t, store, "s")
	create(t, store, "t")
	j := lifecycle.NewJournal(store, lifecycle.NewBus(lifecycle.BusOptions{Backlog: 2}), second)
	w := watch(t, j, nil, lifecycle.Cursor{SessionID: "s"})
	const many = 600 // pages of events
	for range many {
		put(t, j, "s", "x")
		put(t, j, "t", "y")
	}
	var named, others []string
	for _, e := range take(t, w, many+3) {
		if e[0] == 's' {
			named = append(named, e)
		} else {
			others = append(others, e)
		}
	}
	for i, e := range named {
		if e != fmt.Sprintf("s %d x", i+1) {
			t.Fatalf("event %d is %s", i+1, e)
		}
	}
	same(t, "of the other", others, " 0 events_lost", "t 599 y", "t 600 y")
}
