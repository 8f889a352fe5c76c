package server

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Quota bounds the sessions of a tenant, or of all, and the bytes of their logs.
type Quota struct {
	store           eventlog.Log
	sessions, bytes bound
	clock           func() time.Time
	// turn is the lock of the fields below. It has one token in it while it is free.
	turn chan struct{}
	// leaving are sessions under deletion, by incarnation. They are counted until they are gone: an id may be free
	// long before its deletion ends.
	leaving map[eventlog.Incarnation]leaver
	counted time.Time // when the bytes were last counted
	asked   time.Time // when Bytes last had them counted
}

// bound is a limit, 0 for none, and how much of it is used.
type bound struct {
	setting, unit string
	limit         uint64
	used          atomic.Int64
}

// leaver is a session that is being deleted.
type leaver struct {
	bytes uint64
	gone  func() bool
}

// Sessions returns the number of sessions.
func (q *Quota) Sessions() int64 { return q.sessions.used.Load() }

// bytesWithin is how long Bytes waits for a store, once in countEvery: Prometheus waits 10 seconds for all metrics of all
// tenants.
const bytesWithin = 2 * time.Second

// Bytes is the size of all logs and of what was derived from them; the latter is up to a minute old, or older while the
// store does not answer. What forks share counts once for each of them.
func (q *Quota) Bytes() int64 {
	ctx, cancel := context.WithTimeout(context.Background(), bytesWithin)
	defer cancel()
	if q.enter(ctx) == nil {
		if now := q.clock(); min(now.Sub(q.counted), now.Sub(q.asked)) >= countEvery {
			q.asked = now
			_ = q.recount(ctx) // fails when the store does, or is closed: then what was known is kept
		}
		q.leave()
	}
	return max(q.bytes.used.Load(), 0)
}

// start counts the existing sessions and bytes.
func (q *Quota) start(ctx context.Context) error {
	q.turn, q.leaving = make(chan struct{}, 1), map[eventlog.Incarnation]leaver{}
	sessions, err := q.count(ctx)
	q.sessions.used.Store(sessions)
	q.turn <- struct{}{}
	return err
}

// count counts the bytes, and returns how many sessions there are.
func (q *Quota) count(ctx context.Context) (sessions int64, err error) {
	const page = 1000
	var bytes int64
	for query := (eventlog.SessionQuery{Limit: page}); ; {
		some, err := q.store.ListSessions(ctx, query)
		if err != nil {
			return 0, fmt.Errorf("count sessions: %w", err)
		}
		sessions += int64(len(some))
		for _, s := range some {
			bytes += int64(stored(s))
		}
		if len(some) < page {
			q.bytes.used.Store(bytes)
			q.counted = q.clock()
			return sessions, nil
		}
		query.After = some[len(some)-1].ID
	}
}

// take adds n to what is used, or refuses it.
func (b *bound) take(n int64) error {
	after := b.used.Add(n)
	if b.limit == 0 || uint64(after) <= b.limit {
		return nil
	}
	b.used.Add(-n)
	return &apierr.LimitError{Field: "session_id", Setting: b.setting, Limit: b.limit, Actual: uint64(after), Unit: b.unit}
}

// makeSession calls f, which makes a session or fails, if there is room for one. If there is a limit, calls run one
// after the other: otherwise one that fails could take the last place from one that would not. f goes on when ctx
// ends, because a session that it made would otherwise not be counted.
func (q *Quota) makeSession(ctx context.Context, f func(context.Context) error) error {
	if q.sessions.limit > 0 {
		if err := q.enter(ctx); err != nil {
			return err
		}
		defer q.leave()
		if uint64(q.sessions.used.Load()) >= q.sessions.limit {
			for of := range q.leaving {
				q.settle(of)
			}
		}
	}
	if err := q.sessions.take(1); err != nil {
		return err
	}
	err := f(context.WithoutCancel(ctx))
	if err != nil {
		q.sessions.used.Add(-1)
	}
	return err
}

// countEvery is how often bytes are counted again. In between, artifacts are not counted, and an append whose commit
// failed or was not waited for counts.
const countEvery = time.Minute

// recount counts the bytes again if it is time. The caller has the turn.
func (q *Quota) recount(ctx context.Context) error {
	if q.clock().Sub(q.counted) < countEvery {
		return nil
	}
	_, err := q.count(ctx)
	return err
}

// stored returns how many bytes of a quota a session takes.
func stored(s eventlog.Session) uint64 { return s.LogBytes + s.ArtifactBytes }

// grow takes bytes for an append or a fork. With bytes 0 it refuses if the quota is exceeded already.
func (q *Quota) grow(ctx context.Context, bytes uint64) error {
	if q.bytes.limit > 0 {
		if err := q.enter(ctx); err != nil {
			return err
		}
		defer q.leave()
		if err := q.recount(ctx); err != nil {
			return err
		}
	}
	return q.bytes.take(int64(bytes))
}

// deleteSession calls f, which deletes a session, and stops counting the session once its id is free, even if f fails
// after that.
func (q *Quota) deleteSession(ctx context.Context, of eventlog.Incarnation, l leaver, f func() error) error {
	if err := q.enter(ctx); err != nil {
		return err
	}
	q.leaving[of] = l
	q.leave()
	err := f()
	<-q.turn // whatever ctx says: the session is gone
	defer q.leave()
	q.settle(of)
	return err
}

// settle stops counting a session under deletion if it is gone.
func (q *Quota) settle(of eventlog.Incarnation) {
	if l, counted := q.leaving[of]; counted && l.gone() {
		delete(q.leaving, of)
		q.sessions.used.Add(-1)
		q.bytes.used.Add(-int64(l.bytes))
	}
}

func (q *Quota) enter(ctx context.Context) error {
	select {
	case <-q.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *Quota) leave() { q.turn <- struct{}{} }

// quotas are the quotas that apply to a session: its tenant's and the store's.
type quotas []*Quota

func (qs quotas) makeSession(ctx context.Context, f func(context.Context) error) error {
	if len(qs) == 0 {
		return f(ctx)
	}
	return qs[0].makeSession(ctx, func(ctx context.Context) error { return qs[1:].makeSession(ctx, f) })
}

func (qs quotas) grow(ctx context.Context, bytes uint64) error {
	for i, q := range qs {
		if err := q.grow(ctx, bytes); err != nil {
			qs[:i].shrink(bytes)
			return err
		}
	}
	return nil
}

func (qs quotas) shrink(bytes uint64) {
	for _, q := range qs {
		q.bytes.used.Add(-int64(bytes))
	}
}

func (qs quotas) deleteSession(ctx context.Context, of eventlog.Incarnation, l leaver, f func() error) error {
	if len(qs) == 0 {
		return f()
	}
	return qs[0].deleteSession(ctx, of, l, func() error { return qs[1:].deleteSession(ctx, of, l, f) })
}

// gone reports whether an incarnation of a session has ended.
func gone(ctx context.Context, store eventlog.Log, id string, of eventlog.Incarnation) bool {
	now, err := store.Session(context.WithoutCancel(ctx), id)
	var missing *eventlog.NotFoundError
	return errors.As(err, &missing) || err == nil && now.Incarnation != of
}
