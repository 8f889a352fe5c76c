package fair

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// BusyError says that others use what somebody waited for. Waiting longer helps.
type BusyError struct {
	// Setting is the configuration key of the limit, as in the file, and Limit its value.
	Setting string
	Limit   uint64
	// RetryAfter is when to try again.
	RetryAfter time.Duration
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("all of the %d that %s allows are in use", e.Limit, e.Setting)
}

// RetryAfter is when work that was refused may be tried again.
const RetryAfter = time.Second

// Turns are the processor, for work that takes much of it. Clients take turns by how much of
// it they had (weighted fair queueing): who would have had least after its turn, if that is
// like those before, is next. A turn is not interrupted, so clients whose turns are short do
// not wait for long ones to end, but run beside them.
//
// Who has a turn must wait for nothing that somebody holds who waits for a turn. The methods
// may be called from any goroutine; nil has room for everybody.
type Turns struct {
	o TurnsOptions

	mu      sync.Mutex
	running uint64
	waiters uint64 // that ever were
	waiting int
	// now is about what every client had that wants all it can get.
	now     time.Duration
	clients map[string]*turnClient
}

// TurnsOptions are the bounds of Turns.
type TurnsOptions struct {
	// Limit is how many turns run at once, and as many again of clients whose turns are short
	// and who had no more than others. PerClient is how many of them a client may have.
	Limit, PerClient uint64
	// Setting and ClientSetting name the two in the configuration.
	Setting, ClientSetting string
	// Wait is how long a turn is waited for at most.
	Wait time.Duration
	// Clock is the time that is measured.
	Clock func() time.Time
}

// turnClient is a client that has turns, waits for some, or had more than others.
type turnClient struct {
	had     time.Duration
	usual   time.Duration // of a turn
	running uint64
	waiting []*turnWaiter // the oldest first
}

type turnWaiter struct {
	client *turnClient
	number uint64        // of all, in the order they came
	let    chan struct{} // closed once the turn has come
}

// quantum is charged for a turn from its beginning, so that a client with many at once is not
// taken for one that has none.
const quantum = time.Millisecond

// A client whose turns are short may run beside others until it had burst more than they.
const (
	short = 50 * time.Millisecond
	burst = 250 * time.Millisecond
)

// NewTurns returns turns that nobody has.
func NewTurns(o TurnsOptions) *Turns { return &Turns{o: o, clients: map[string]*turnClient{}} }

// Running is how many turns there are now.
func (t *Turns) Running() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(t.running)
}

// Take waits for a turn. The error is a *BusyError, or that of ctx. done ends the turn; it
// may be called more than once, by one goroutine.
func (t *Turns) Take(ctx context.Context) (done func(), err error) {
	if t == nil || ctx.Value(exemptKey{}) != nil {
		return func() {}, nil
	}
	c, w := t.join(Client(ctx))
	if w == nil {
		return t.turn(c), nil
	}
	switch let, err := Await(ctx, w.let, t.o.Wait, func() bool { return t.quit(w) }); {
	case let:
		return t.turn(w.client), nil
	case err != nil:
		return nil, err
	default:
		return nil, t.busy(w.client)
	}
}

type exemptKey struct{}

// Exempt returns a context for work that computes little and must not wait.
func Exempt(ctx context.Context) context.Context { return context.WithValue(ctx, exemptKey{}, true) }

// Turn is a turn of one goroutine, which it has while it computes and not while it waits.
type Turn struct {
	turns *Turns
	done  func() // nil while it has none
}

// Of returns no turn yet.
func Of(t *Turns) Turn { return Turn{turns: t} }

// Begin waits for the turn, unless it has come before. The error is that of Take.
func (t *Turn) Begin(ctx context.Context) (err error) {
	if t.done == nil {
		t.done, err = t.turns.Take(ctx)
	}
	return err
}

// End ends the turn if it has come.
func (t *Turn) End() {
	if t.done != nil {
		t.done()
		t.done = nil
	}
}

func (t *Turns) busy(c *turnClient) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.running >= t.o.PerClient {
		return &BusyError{Setting: t.o.ClientSetting, Limit: t.o.PerClient, RetryAfter: RetryAfter}
	}
	return &BusyError{Setting: t.o.Setting, Limit: t.o.Limit, RetryAfter: RetryAfter}
}

// turn is a turn that has come. It is charged to its client in the end.
func (t *Turns) turn(c *turnClient) func() {
	began, ended := t.o.Clock(), false
	return func() {
		if ended {
			return
		}
		ended = true
		took := t.o.Clock().Sub(began)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.running--
		c.running--
		c.had += took - quantum
		c.usual = max(took, c.usual-(c.usual-took)/4)
		t.next()
	}
}

// join begins a turn of a client, or returns its place among those that wait.
func (t *Turns) join(name string) (*turnClient, *turnWaiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.clients[name]
	if c == nil {
		c = &turnClient{}
		t.clients[name] = c
	}
	if c.running == 0 && len(c.waiting) == 0 {
		c.had = max(c.had, t.now) // what it did not use while it was away is not saved for it
	}
	if t.waiting == 0 && c.running < t.o.PerClient && t.hasRoom(c) {
		t.begin(c)
		return c, nil
	}
	t.waiters++
	t.waiting++
	w := &turnWaiter{c, t.waiters, make(chan struct{})}
	c.waiting = append(c.waiting, w)
	t.next()
	return c, w
}

// quit takes a waiter out; it reports false where its turn has come.
func (t *Turns) quit(w *turnWaiter) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, other := range w.client.waiting {
		if other == w {
			w.client.waiting = append(w.client.waiting[:i:i], w.client.waiting[i+1:]...)
			t.waiting--
			t.next()
			return true
		}
	}
	return false
}

// next lets in whose turn it is.
func (t *Turns) next() {
	for {
		first := t.first()
		if first == nil || !t.hasRoom(first) {
			return
		}
		t.begin(first)
		close(first.waiting[0].let)
		first.waiting = first.waiting[1:]
		t.waiting--
	}
}

// hasRoom reports whether a client may have a turn if it is next.
func (t *Turns) hasRoom(c *turnClient) bool {
	beside := c.usual <= short && c.had <= t.now+burst && t.running < 2*t.o.Limit
	return t.running < t.o.Limit || beside
}

func (t *Turns) begin(c *turnClient) {
	t.now = max(t.now, c.had)
	c.had += quantum
	t.running++
	c.running++
}

// first is the client whose turn it is, if there is room; nil if nobody may have one. It
// forgets clients of which nothing is known that matters.
func (t *Turns) first() (first *turnClient) {
	for name, c := range t.clients {
		switch {
		case c.running == 0 && len(c.waiting) == 0 && c.had+c.usual <= t.now:
			delete(t.clients, name)
		case len(c.waiting) == 0 || c.running >= t.o.PerClient:
		case first == nil || c.before(first):
			first = c
		}
	}
	if first == nil && t.running == 0 {
		clear(t.clients) // who had much did not have it from anybody
	}
	return first
}

func (c *turnClient) before(other *turnClient) bool {
	return cmp.Or(cmp.Compare(c.had+c.usual, other.had+other.usual), cmp.Compare(c.waiting[0].number, other.waiting[0].number)) < 0
}
