package pglog_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/pglog"
)

// groupCount counts statements that append for several sessions.
type groupCount struct{ atomic.Int64 }

func (c *groupCount) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	if strings.Contains(d.SQL, "SKIP LOCKED") {
		c.Add(1)
	}
	return ctx
}

func (*groupCount) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestGroups: two processes append to the same sessions, by writers of which many wait. Each append is stored once,
// whatever becomes of those that share its transaction.
func TestGroups(t *testing.T) {
	needServer(t)
	const sessions, events = 24, 12
	dsn := server.Schema(t)
	groups := &groupCount{}
	all := []*pglog.Store{open(t, dsn, pglog.Options{Attempts: 200, Tracer: groups}), open(t, dsn, pglog.Options{Attempts: 200})}
	for _, s := range all {
		t.Cleanup(func() { closeStore(t, s) })
	}
	var wg sync.WaitGroup
	for n := range sessions {
		for p, s := range all {
			wg.Go(func() {
				id := fmt.Sprintf("s%d", n)
				for i := range events {
					// The second time a duplicate, in a transaction with what is new to others.
					for range 2 {
						receipts, err := appendTo(t, s, id, logtest.Say(fmt.Sprintf("p%d %d", p, i)))
						if err != nil || len(receipts) != 1 {
							t.Errorf("append to %s: %v, %v", id, receipts, err)
						}
					}
				}
			})
		}
	}
	wg.Wait()
	if groups.Load() == 0 {
		t.Error("no statement appended for several sessions")
	}
	for n := range sessions {
		id := fmt.Sprintf("s%d", n)
		got, err := logtest.Collect(all[1].Read(t.Context(), id, 1, 0))
		if err != nil || len(got) != len(all)*events {
			t.Errorf("%s has %d events: %v", id, len(got), err)
		}
		seen := map[string]bool{}
		for i, e := range got {
			if e.Seq != eventlog.Seq(i+1) || seen[e.ID] {
				t.Errorf("%s: event %d is %q at %d, there before: %v", id, i, e.ID, e.Seq, seen[e.ID])
			}
			seen[e.ID] = true
		}
		for seq := range eventlog.Seq(len(got)) {
			before, err := all[0].ChainHead(t.Context(), id, seq+1)
			if after, err2 := all[1].ChainHead(t.Context(), id, seq+1); err != nil || err2 != nil || string(before) != string(after) {
				t.Errorf("%s: the chain after event %d differs: %v, %v", id, seq+1, err, err2)
			}
		}
	}
}

// TestGroupsSkipWhatIsLocked: who appends to a session that another transaction holds waits for that alone.
func TestGroupsSkipWhatIsLocked(t *testing.T) {
	needServer(t)
	dsn := server.Schema(t)
	groups := &groupCount{}
	s := open(t, dsn, pglog.Options{Tracer: groups, MaxConnections: 8})
	t.Cleanup(func() { closeStore(t, s) })
	if _, err := appendTo(t, s, "held", logtest.Say("first")); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT 1 FROM contextd_sessions WHERE id = 'held' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	var others, held sync.WaitGroup
	held.Go(func() {
		if _, err := appendTo(t, s, "held", logtest.Say("second")); err != nil {
			t.Errorf("append to the session that was held: %v", err)
		}
	})
	for n := range 32 {
		others.Go(func() {
			for i := range 8 {
				if _, err := appendTo(t, s, fmt.Sprintf("s%d", n), logtest.Say(fmt.Sprint(i))); err != nil {
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	others.Wait() // forever if they waited for the transaction
	if groups.Load() == 0 {
		t.Error("no statement appended for several sessions")
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	held.Wait()
	if got, err := logtest.Collect(s.Read(t.Context(), "held", 1, 0)); err != nil || len(got) != 2 {
		t.Errorf("the session that was held has %d events: %v", len(got), err)
	}
}
