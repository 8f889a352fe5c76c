package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	eventlog "github.com/contextd/contextd/internal/log"
)

// sessionQuota bounds the number of sessions. Without a limit it counts nothing
// and costs nothing.
type sessionQuota struct {
	store eventlog.Log
	limit uint64
	// turn holds a token while nobody uses what follows.
	turn  chan struct{}
	count uint64
	// leaving are sessions that are being deleted, by incarnation, and counted still:
	// an id may be free long before its deletion ends.
	leaving map[eventlog.Incarnation]string
}

// start counts the sessions that there are.
func (q *sessionQuota) start(ctx context.Context, store eventlog.Log, limit uint64) error {
	q.store, q.limit = store, limit
	q.turn = make(chan struct{}, 1)
	q.turn <- struct{}{}
	q.leaving = map[eventlog.Incarnation]string{}
	if limit == 0 {
		return nil
	}
	const page = 1000
	for query := (eventlog.SessionQuery{Limit: page}); ; {
		sessions, err := store.ListSessions(ctx, query)
		if err != nil {
			return fmt.Errorf("count sessions: %w", err)
		}
		q.count += uint64(len(sessions))
		if len(sessions) < page {
			return nil
		}
		query.After = sessions[len(sessions)-1].ID
	}
}

// make runs f, which makes a session or fails, if there is room for one. Makers
// take turns, so that no two share the last place. f is not interrupted when ctx
// ends: what it made would not be counted.
func (q *sessionQuota) make(ctx context.Context, f func(context.Context) error) error {
	if q.limit == 0 {
		return f(ctx)
	}
	if err := q.enter(ctx); err != nil {
		return err
	}
	defer q.leave()
	if q.count >= q.limit {
		for of, id := range q.leaving {
			q.settle(ctx, id, of)
		}
	}
	if q.count >= q.limit {
		return &apierr.LimitError{Field: "session_id", Setting: "max_sessions", Limit: q.limit, Actual: q.count + 1, Unit: "sessions"}
	}
	if err := f(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	q.count++
	return nil
}

// delete runs f, which deletes a session, and counts the session no more from when its
// id is free, whether or not f fails after that.
func (q *sessionQuota) delete(ctx context.Context, id string, of eventlog.Incarnation, f func() error) error {
	if q.limit == 0 {
		return f()
	}
	if err := q.enter(ctx); err != nil {
		return err
	}
	q.leaving[of] = id
	q.leave()
	err := f()
	<-q.turn // whatever ctx says: the session is gone
	defer q.leave()
	q.settle(ctx, id, of)
	return err
}

// settle takes a session that was to be deleted out of the count if it is gone.
func (q *sessionQuota) settle(ctx context.Context, id string, of eventlog.Incarnation) {
	if _, counted := q.leaving[of]; counted && gone(ctx, q.store, id, of) {
		delete(q.leaving, of)
		q.count--
	}
}

func (q *sessionQuota) enter(ctx context.Context) error {
	select {
	case <-q.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *sessionQuota) leave() { q.turn <- struct{}{} }

// gone reports whether an incarnation of a session has ended.
func gone(ctx context.Context, store eventlog.Log, id string, of eventlog.Incarnation) bool {
	now, err := store.Session(context.WithoutCancel(ctx), id)
	var missing *eventlog.NotFoundError
	return errors.As(err, &missing) || err == nil && now.Incarnation != of
}
