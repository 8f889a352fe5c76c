package fair

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// BusyError says that a resource is in use by others. A later try may succeed.
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

// RetryAfter is after how long refused work may be tried again.
const RetryAfter = time.Second

// Turns shares out the processor for work that takes much of it, by weighted fair queueing. Each client has a virtual
// time, which grows with the processor time that it used. The next turn goes to the client whose virtual time would
// be the smallest after a turn of its usual length. A turn is never interrupted, so clients with short turns run
// beside long ones instead of waiting for them.
//
// Whoever has a turn must not wait for anything that is held by somebody who waits for a turn. The methods may be
// called from any goroutine; a nil *Turns never makes anybody wait.
type Turns struct {
	o TurnsOptions

	mu      sync.Mutex
	running uint64
	waiters uint64 // that ever were
	waiting int
	// now is the virtual time: about what a client has had that always wanted a turn.
	now     time.Duration
	clients map[string]*turnClient
}

// TurnsOptions are the bounds of Turns.
type TurnsOptions struct {
	// Limit is how many turns run at once. As many again may run for clients whose turns are short and who had no
	// more than others. PerClient bounds the turns of one client.
	Limit, PerClient uint64
	// Setting and ClientSetting are the configuration keys of Limit and PerClient.
	Setting, ClientSetting string
	// Wait is how long a turn is waited for at most.
	Wait time.Duration
	// Clock measures how long turns take.
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

// quantum is charged at the begin of a turn, so that a client with many turns at once does not count as one without
// any.
const quantum = time.Millisecond

// A client whose turns are short may run beside others until it has had burst more than they.
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

// Take waits for a turn. The error is a *BusyError, or that of ctx. done ends the turn; one goroutine may call it
// several times.
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

// Turn is the turn of one goroutine: taken while it computes, and given back while it waits.
type Turn struct {
	turns *Turns
	done  func() // nil while it has none
}

// Of returns a Turn that is not taken yet.
func Of(t *Turns) Turn { return Turn{turns: t} }

// Begin waits for the turn, unless the goroutine has it already. The error is that of Take.
func (t *Turn) Begin(ctx context.Context) (err error) {
	if t.done == nil {
		t.done, err = t.turns.Take(ctx)
	}
	return err
}

// End gives the turn back, if the goroutine has it.
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

// turn starts a client's turn and returns the function that ends it and charges the client for it.
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

// join starts a turn for a client if there is room, and else queues it and returns the waiter.
func (t *Turns) join(name string) (*turnClient, *turnWaiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.clients[name]
	if c == nil {
		c = &turnClient{}
		t.clients[name] = c
	}
	if c.running == 0 && len(c.waiting) == 0 {
		c.had = max(c.had, t.now) // unused time does not add up while a client is away
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

// quit removes a waiter from the queue; it reports false if its turn has come.
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

// next grants turns to waiters while there is room.
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

// hasRoom reports whether a client may have a turn now, if it is the next.
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

// first returns the client that gets the next turn; nil if nobody may have one. It also forgets idle clients.
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
