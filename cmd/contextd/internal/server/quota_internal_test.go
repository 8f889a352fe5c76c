package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// silent is a store that does not answer.
type silent struct{ eventlog.Log }

func (silent) ListSessions(ctx context.Context, _ eventlog.SessionQuery) ([]eventlog.Session, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Metrics are collected while the store does not answer: otherwise no alert would fire then.
func TestBytesOfASilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &Quota{store: silent{}, clock: time.Now, turn: make(chan struct{}, 1)}
		q.bytes.used.Store(7)
		if n := q.Bytes(); n != 7 { // an append has the turn
			t.Errorf("%d bytes", n)
		}
		q.leave()
		began := time.Now()
		for range 10 {
			if n := q.Bytes(); n != 7 {
				t.Errorf("%d bytes", n)
			}
		}
		if took := time.Since(began); took != bytesWithin {
			t.Errorf("ten scrapes waited for %s in all", took)
		}
	})
}
