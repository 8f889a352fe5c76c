// Package memory bounds how many bytes calls may hold at once. A budget is shared by
// all calls of the daemon; a call that finds none free waits a while and is then refused.
//
// A call takes from the budgets in one order, so that no two calls wait for each other:
// first for the request that it receives, then for its work, then for its answer.
package memory

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// BusyError says that other calls hold what a call needs. Waiting helps.
type BusyError struct {
	// Setting is the configuration key of the bound, as in the file.
	Setting string
	// Limit is its value.
	Limit uint64
	// RetryAfter is when to try again.
	RetryAfter time.Duration
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("other calls hold all of the %d that %s allows", e.Limit, e.Setting)
}

// retryAfter is when a refused call may be tried again.
const retryAfter = time.Second

type exemptKey struct{}

// Exempt returns a context for work within what a call has taken already: it takes
// nothing more, and so cannot wait for itself.
func Exempt(ctx context.Context) context.Context { return context.WithValue(ctx, exemptKey{}, true) }

// Budget is a number of bytes; nil is any number. Its methods may be called from any
// goroutine.
type Budget struct {
	setting string
	total   int64
	wait    time.Duration
	room    *semaphore.Weighted
	used    atomic.Int64
	refused atomic.Int64
}

// NewBudget returns the budget of a setting. A call that finds it used up waits for at most
// wait.
func NewBudget(setting string, total uint64, wait time.Duration) *Budget {
	n := int64(min(total, 1<<62))
	return &Budget{setting: setting, total: n, wait: wait, room: semaphore.NewWeighted(n)}
}

// Used is how many bytes are taken.
func (b *Budget) Used() int64 { return b.used.Load() }

// Refused counts the calls that waited in vain.
func (b *Budget) Refused() int64 { return b.refused.Load() }

// Take waits until the budget has room for n bytes. What is larger than the whole
// budget gets all of it, alone. The error is a *BusyError, or that of ctx.
func (b *Budget) Take(ctx context.Context, n uint64) (*Grant, error) {
	if b == nil || ctx.Value(exemptKey{}) != nil {
		return nil, nil
	}
	g := &Grant{budget: b}
	weight := int64(min(n, uint64(b.total)))
	if !b.room.TryAcquire(weight) {
		waiting, cancel := context.WithTimeout(ctx, b.wait)
		defer cancel()
		if b.room.Acquire(waiting, weight) != nil {
			return nil, b.refusal(ctx)
		}
	}
	g.held.Store(weight)
	b.used.Add(weight)
	return g, nil
}

func (b *Budget) refusal(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	b.refused.Add(1)
	return &BusyError{Setting: b.setting, Limit: uint64(b.total), RetryAfter: retryAfter}
}

// Grant is a part of a budget. Its methods may be called from any goroutine, and on
// nil, which is no part.
type Grant struct {
	budget *Budget
	held   atomic.Int64
}

// Keep gives back all but n bytes; what is not there cannot be kept.
func (g *Grant) Keep(n uint64) {
	if g == nil {
		return
	}
	for {
		held := g.held.Load()
		rest := int64(min(n, uint64(held)))
		if held == rest {
			return
		}
		if g.held.CompareAndSwap(held, rest) {
			g.budget.used.Add(rest - held)
			g.budget.room.Release(held - rest)
			return
		}
	}
}

// Release gives back everything. It may be called more than once.
func (g *Grant) Release() { g.Keep(0) }
