package server

import (
	"context"
	"fmt"
	"sync"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	eventlog "github.com/contextd/contextd/internal/log"
)

// sessionQuota bounds the number of sessions. Without a limit it counts nothing
// and costs nothing.
type sessionQuota struct {
	mu    sync.Mutex
	limit uint64
	count uint64
}

// start counts the sessions that there are.
func (q *sessionQuota) start(ctx context.Context, store eventlog.Store, limit uint64) error {
	q.limit = limit
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
// take turns, so that no two share the last place.
func (q *sessionQuota) make(f func() error) error {
	if q.limit == 0 {
		return f()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count >= q.limit {
		return &apierr.LimitError{Field: "session_id", Setting: "max_sessions", Limit: q.limit, Actual: q.count + 1, Unit: "sessions"}
	}
	if err := f(); err != nil {
		return err
	}
	q.count++
	return nil
}

// deleted takes note that a session is gone.
func (q *sessionQuota) deleted() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count > 0 {
		q.count--
	}
}
