// Package memory bounds how many bytes calls may hold at once. A budget is shared by
// all calls of the daemon; a call that finds none free waits a while and is then refused.
//
// A call takes from the budgets in one order, so that no two calls wait for each other:
// first for the request that it receives, then for its work, then for its answer.
package memory

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/contextd/contextd/internal/fair"
)

type exemptKey struct{}

// Exempt returns a context for work within a call that has its memory already: Take grants it nothing more, so the
// call cannot wait for itself.
func Exempt(ctx context.Context) context.Context { return context.WithValue(ctx, exemptKey{}, true) }

// Budget is a number of bytes that calls share; nil is unlimited. A quarter of it is reserved for clients that hold
// little, so that a client that holds nothing gets some whatever others hold. Of those that wait, the client that
// would then hold least is next. Its methods may be called from any goroutine.
type Budget struct {
	setting string
	total   uint64
	wait    time.Duration
	refused atomic.Int64

	mu      sync.Mutex
	used    uint64
	held    map[string]uint64 // by client
	waiting []*waiter         // in the order they came
}

// In parts of a budget. Anybody may take until commonParts are used. Of the rest a client may take as long as it
// holds no more than clientParts. largestParts is the largest grant, so that nobody has to wait for the whole budget.
const (
	parts        = 256
	commonParts  = 192
	clientParts  = 1
	largestParts = 160
)

// waiter is a call that waits for bytes.
type waiter struct {
	client string
	n      uint64
	let    chan struct{} // closed once the bytes are granted
}

// NewBudget returns the budget of a configuration key. A call waits at most wait for bytes.
func NewBudget(setting string, total uint64, wait time.Duration) *Budget {
	return &Budget{setting: setting, total: min(total, 1<<48), wait: wait, held: map[string]uint64{}}
}

// Used is how many bytes are granted now.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(b.used)
}

// Refused counts the calls that waited in vain.
func (b *Budget) Refused() int64 { return b.refused.Load() }

// Take waits until n bytes are granted. A request for more than the largest piece gets the largest piece. The error
// is a *fair.BusyError, or that of ctx.
func (b *Budget) Take(ctx context.Context, n uint64) (*Grant, error) {
	if b == nil || n == 0 || ctx.Value(exemptKey{}) != nil {
		return nil, nil
	}
	client := fair.Client(ctx)
	n = min(n, b.portion(largestParts))
	if w := b.join(client, n); w != nil {
		switch let, err := fair.Await(ctx, w.let, b.wait, func() bool { return b.quit(w) }); {
		case err != nil:
			return nil, err
		case !let:
			b.refused.Add(1)
			return nil, &fair.BusyError{Setting: b.setting, Limit: b.total, RetryAfter: fair.RetryAfter}
		}
	}
	return &Grant{budget: b, client: client, held: n}, nil
}

// join grants bytes at once, or queues the request and returns its waiter.
func (b *Budget) join(client string, n uint64) *waiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 && b.hasRoom(client, n, b.portion(commonParts)) {
		b.take(client, n)
		return nil
	}
	w := &waiter{client, n, make(chan struct{})}
	b.waiting = append(b.waiting, w)
	b.next()
	return w
}

// quit removes a waiter from the queue; it reports false if its bytes were granted.
func (b *Budget) quit(w *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiting, w)
	if i < 0 {
		return false
	}
	b.waiting = slices.Delete(b.waiting, i, i+1)
	b.next() // those after it may have waited because of it
	return true
}

// next grants waiters what is free. Once a waiter has to wait for the common part, later ones get nothing of that
// part: otherwise small requests would always take it before a large one can.
func (b *Budget) next() {
	slices.SortStableFunc(b.waiting, func(x, y *waiter) int { return cmp.Compare(b.held[x.client]+x.n, b.held[y.client]+y.n) })
	common := b.portion(commonParts)
	b.waiting = slices.DeleteFunc(b.waiting, func(w *waiter) bool {
		if !b.hasRoom(w.client, w.n, common) {
			common = 0
			return false
		}
		b.take(w.client, w.n)
		close(w.let)
		return true
	})
}

// hasRoom reports whether a client may have n bytes. Anybody may take until common bytes of the budget are used.
func (b *Budget) hasRoom(client string, n, common uint64) bool {
	after := b.used + n
	return after <= common || after <= b.total && b.held[client]+n <= b.portion(clientParts)
}

func (b *Budget) take(client string, n uint64) {
	b.used += n
	b.held[client] += n
}

func (b *Budget) portion(n uint64) uint64 { return b.total * n / parts }

func (b *Budget) giveBack(client string, n uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.held[client] -= n; b.held[client] == 0 {
		delete(b.held, client)
	}
	b.next()
}

// Grant is bytes of a budget. Its methods may be called from any goroutine, and on nil, which holds nothing.
type Grant struct {
	budget *Budget
	client string
	mu     sync.Mutex
	held   uint64
	more   *Grant // is released with it
}

// Keep gives back all but n bytes. It cannot enlarge the grant.
func (g *Grant) Keep(n uint64) {
	if g == nil {
		return
	}
	g.mu.Lock()
	back := g.held - min(n, g.held)
	g.held -= back
	g.mu.Unlock()
	g.budget.giveBack(g.client, back)
}

// Release gives back everything. It may be called more than once.
func (g *Grant) Release() {
	if g == nil {
		return
	}
	g.Keep(0)
	g.more.Release()
}
