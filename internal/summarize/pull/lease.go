package pull

import (
	"context"
	"slices"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// The bounds of a lease.
const (
	DefaultLease = 2 * time.Minute
	MaxLease     = time.Hour
)

// Lease waits for a task of one of the sessions, or of any if sessions is empty, and leases it to the worker. When
// the lease has ended, another worker may get the task. A lease of 0 is the queue's default; none is longer than
// MaxLease.
func (q *Queue) Lease(ctx context.Context, worker string, sessions []string, lease time.Duration) (Task, error) {
	switch {
	case worker == "":
		return Task{}, &eventlog.InvalidError{Field: "worker_id", Reason: "must not be empty"}
	case lease < 0:
		return Task{}, &eventlog.InvalidError{Field: "lease", Reason: "must not be negative"}
	case lease == 0:
		lease = q.lease
	}
	for {
		if err := ctx.Err(); err != nil {
			return Task{}, err
		}
		task, ok, arrived, next := q.take(worker, sessions, min(lease, MaxLease))
		if ok {
			return task, nil
		}
		wait(ctx, arrived, next)
	}
}

// take leases the oldest free task. If there is none, the caller should try again when arrived is closed, or after
// next, when a lease ends; next is 0 if there is no lease.
func (q *Queue) take(worker string, sessions []string, lease time.Duration) (task Task, ok bool, arrived <-chan struct{}, next time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for _, p := range q.tasks {
		if len(sessions) > 0 && !slices.Contains(sessions, p.SessionID) {
			continue
		}
		left := p.Expires.Sub(now)
		if left <= 0 {
			p.Expires, p.worker = now.Add(lease), worker
			return p.Task, true, nil, 0
		}
		if next == 0 || left < next {
			next = left
		}
	}
	return Task{}, false, q.arrived, next
}

func wait(ctx context.Context, arrived <-chan struct{}, next time.Duration) {
	var expired <-chan time.Time
	if next > 0 {
		timer := time.NewTimer(next)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-arrived:
	case <-expired:
	case <-ctx.Done():
	}
}
