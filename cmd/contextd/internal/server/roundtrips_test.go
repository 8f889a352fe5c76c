package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/contextd/contextd/internal/log/pglog"
	"github.com/contextd/contextd/internal/log/pglog/pgtest"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// statements are those that a store made, but the notifications of other processes, for which
// nobody waits.
type statements struct {
	mu  sync.Mutex
	all []string
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.Contains(d.SQL, "pg_notify") {
		s.all = append(s.all, d.SQL)
	}
	return ctx
}

func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// taken returns what was made since it was asked last.
func (s *statements) taken() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.all
	s.all = nil
	return all
}

// TestRoundTrips: how often calls on a session that the daemon holds wait for the database.
func TestRoundTrips(t *testing.T) {
	database, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	if database == nil {
		t.Skip("SKIPPED: no PostgreSQL is installed (Debian's package postgresql)")
	}
	t.Cleanup(database.Stop)
	made := &statements{}
	store, err := pglog.Open(t.Context(), database.DSN(""), pglog.Options{Migrate: true, Tracer: made, Poll: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	a := serve(t, store)
	call := func(what string, most int, do func()) {
		t.Helper()
		made.taken()
		do()
		if got := made.taken(); len(got) > most {
			t.Errorf("%s waits for the database %d times, want %d at most:\n%s", what, len(got), most, strings.Join(got, "\n"))
		}
	}
	assemble := func() {
		t.Helper()
		if _, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s"}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 4 {
		a.append(t, "s", user(fmt.Sprint(n)))
		assemble()
	}
	var mark *contextdv1.LogMark
	call("an append", 1, func() { mark = a.append(t, "s", user("again")).GetMark() })
	assemble()
	call("an append with the newest mark", 1, func() {
		resp, err := a.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{user("known")}, Known: mark})
		if mark = resp.GetMark(); err != nil || mark.GetChainHead() == "" {
			t.Errorf("the mark is %v, %v", mark, err)
		}
	})
	call("an assembly with the newest mark", 2, func() {
		if _, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Known: mark}); err != nil {
			t.Error(err)
		}
	})
	a.append(t, "s", user("again"))
	call("a warm assembly after an append", 2, assemble)
	call("a warm assembly of the same", 2, assemble)
}
