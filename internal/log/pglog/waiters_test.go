package pglog_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/pglog"
)

// asked counts the statements that ask for the head of one session and those for all that are waited for.
type asked struct {
	single, all atomic.Int64
	changed     chan struct{} // has an entry after one was counted
}

func (a *asked) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	switch {
	case strings.Contains(q.SQL, "head FROM contextd_sessions WHERE incarnation = $1"):
		a.single.Add(1)
	case strings.Contains(q.SQL, "head FROM contextd_sessions WHERE incarnation = ANY"):
		a.all.Add(1)
	}
	select {
	case a.changed <- struct{}{}:
	default:
	}
	return ctx
}

func (*asked) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestManyWait: those who wait ask for the head once each, and not again while it stays: 1,000 that followed idle
// sessions asked the database 2,000 times a second.
func TestManyWait(t *testing.T) {
	needServer(t)
	a := &asked{changed: make(chan struct{}, 1)}
	s := open(t, server.Schema(t), pglog.Options{Tracer: a, Poll: time.Millisecond})
	defer closeStore(t, s)
	const sessions, each = 5, 4
	for n := range sessions {
		if _, err := appendTo(t, s, fmt.Sprint(n), logtest.Say("a")); err != nil {
			t.Fatal(err)
		}
	}
	var waiting sync.WaitGroup
	for n := range sessions * each {
		waiting.Go(func() {
			if head, err := s.WaitPast(t.Context(), fmt.Sprint(n%sessions), 1); err != nil || head != 2 {
				t.Errorf("head %d, %v", head, err)
			}
		})
	}
	until := func(done func() bool) {
		for !done() {
			<-a.changed
		}
	}
	until(func() bool { return a.single.Load() >= sessions*each })
	from := a.all.Load()
	until(func() bool { return a.all.Load() >= from+50 || a.single.Load() > 10*sessions*each })
	// Who looked while another's append was notified looks once more.
	if n := a.single.Load(); n > 2*sessions*each {
		t.Errorf("%d that wait asked %d times, while all were asked for 50 times", sessions*each, n)
	}
	for n := range sessions {
		if _, err := appendTo(t, s, fmt.Sprint(n), logtest.Say("b")); err != nil {
			t.Fatal(err)
		}
	}
	waiting.Wait()
}
