package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// DefaultDeadline is how long to wait for an answer if nothing else is set.
const DefaultDeadline = 5 * time.Second

// HooksOptions configure hooks.
type HooksOptions struct {
	// Deadline is for subscribers without one of their own; 0 is DefaultDeadline.
	Deadline time.Duration
	// OnTimeout is the answer of a subscriber that gives none in time: Allow (the default) or Block.
	OnTimeout Decision
	// Instance is a part of the ids of calls, so that an answer to an earlier run of the daemon is not mistaken for
	// one to this run.
	Instance string
	// Observe, if set, is called with the outcome of each PreCompact call to a subscriber. It must not block.
	Observe func(HookOutcome)
}

// Validate returns an error for the first invalid option.
func (o HooksOptions) Validate() error {
	switch {
	case o.Deadline < 0:
		return fmt.Errorf("the deadline of hooks must not be negative, it is %s", o.Deadline)
	case o.OnTimeout != "" && o.OnTimeout != Allow && o.OnTimeout != Block:
		return fmt.Errorf("what hooks do on a timeout must be allow or block, it is %q", o.OnTimeout)
	default:
		return nil
	}
}

// Hooks asks runtimes about compactions before they happen, and reports them afterwards. Its methods may be called
// from any goroutine.
type Hooks struct {
	options HooksOptions
	prefix  string // of the ids of calls
	turns   turns

	mu          sync.Mutex
	subscribed  uint64        // how many ever
	subscribers []*Subscriber // in the order in which they subscribed; never changed in place
}

// NewHooks returns hooks without subscribers. The options must be valid.
func NewHooks(o HooksOptions) *Hooks {
	if o.Deadline == 0 {
		o.Deadline = DefaultDeadline
	}
	if o.Observe == nil {
		o.Observe = func(HookOutcome) {}
	}
	h := &Hooks{options: o}
	if o.Instance != "" {
		h.prefix = o.Instance + "."
	}
	return h
}

// Subscribe adds a subscriber after all others. The caller must close it.
func (h *Hooks) Subscribe(want Subscription) *Subscriber {
	if want.Deadline <= 0 {
		want.Deadline = h.options.Deadline
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscribed++
	s := newSubscriber(h, want, fmt.Sprintf("%s%d.", h.prefix, h.subscribed))
	h.subscribers = append(slices.Clone(h.subscribers), s)
	return s
}

func (h *Hooks) remove(s *Subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscribers = slices.DeleteFunc(slices.Clone(h.subscribers), func(other *Subscriber) bool { return other == s })
}

// PreCompact asks whether a compaction that has something to do may happen, and on which terms. It asks subscribers
// one after the other, in the order in which they subscribed. Each gets the terms with the changes of those before
// it, and the first block ends it. A subscriber that does not answer within its deadline gives the answer of
// HooksOptions.OnTimeout. One that disconnects before its answer gives none, and blocks nothing. Calls for the same
// session wait for each other.
//
// The only error is ctx's; then there is no verdict.
func (h *Hooks) PreCompact(ctx context.Context, c Call) (Verdict, error) {
	v := Verdict{Decision: Allow, Terms: c.Terms}
	if len(h.serving(PreCompact, c)) == 0 {
		return v, nil
	}
	if err := h.turns.enter(ctx, c.SessionID); err != nil {
		return Verdict{}, err
	}
	defer h.turns.leave(c.SessionID)
	c.Hook, c.Result = PreCompact, nil
	var reasons []string
	for _, s := range h.serving(PreCompact, c) {
		c.Terms = v.Terms
		reply, how := s.ask(ctx, c)
		s.note(how == late)
		h.options.Observe(how.of(reply))
		switch how {
		case canceled:
			return Verdict{}, context.Cause(ctx)
		case gone:
			continue
		case late:
			if h.options.OnTimeout != Block {
				continue
			}
			reply = Reply{Decision: Block, Reason: fmt.Sprintf("a hook did not answer within %s", s.want.Deadline)}
		}
		switch reply.Decision {
		case Block:
			v.Decision, v.Reason = Block, reply.Reason
			return v, nil
		case Modify:
			v.Decision, v.Terms = Modify, reply.apply(v.Terms)
			if reply.Reason != "" {
				reasons = append(reasons, reply.Reason)
			}
		}
	}
	v.Reason = strings.Join(reasons, "; ")
	return v, nil
}

// PostCompact reports a compaction that happened; c.Result must be set. It does not wait for subscribers. Each is
// notified in the order of the calls.
func (h *Hooks) PostCompact(c Call) {
	c.Hook = PostCompact
	for _, s := range h.serving(PostCompact, c) {
		s.notify(c)
	}
}

// Overdue returns how many of the subscribers did not answer their last PreCompact call in time.
func (h *Hooks) Overdue() int {
	h.mu.Lock()
	all := h.subscribers
	h.mu.Unlock()
	n := 0
	for _, s := range all {
		s.mu.Lock()
		if s.overdue {
			n++
		}
		s.mu.Unlock()
	}
	return n
}

// serving lists the subscribers to call for a hook of a session.
func (h *Hooks) serving(hook Hook, c Call) []*Subscriber {
	if !fires(c.Mode) {
		return nil
	}
	h.mu.Lock()
	all := h.subscribers
	h.mu.Unlock()
	var out []*Subscriber
	for _, s := range all {
		if s.serves(hook) && s.sessions.has(c.SessionID) {
			out = append(out, s)
		}
	}
	return out
}

// turns is a lock for each session. Those that wait for it get it in the order in which they came.
type turns struct {
	mu sync.Mutex
	// waiting has a channel for each who waits, which is closed when its turn comes. A session that is not in it is free.
	waiting map[string][]chan struct{}
}

// enter waits until the session is free, or ctx ends. Unless it returns an error, the caller must call leave once.
func (t *turns) enter(ctx context.Context, sessionID string) error {
	t.mu.Lock()
	waiting, held := t.waiting[sessionID]
	if !held {
		if t.waiting == nil {
			t.waiting = map[string][]chan struct{}{}
		}
		t.waiting[sessionID] = nil
		t.mu.Unlock()
		return nil
	}
	mine := make(chan struct{})
	t.waiting[sessionID] = append(waiting, mine)
	t.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.Index(t.waiting[sessionID], mine)
	if i >= 0 {
		t.waiting[sessionID] = slices.Delete(t.waiting[sessionID], i, i+1)
	}
	t.mu.Unlock()
	if i < 0 {
		t.leave(sessionID) // the turn came meanwhile
	}
	return context.Cause(ctx)
}

// leave gives the session to the next who waits for it.
func (t *turns) leave(sessionID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting := t.waiting[sessionID]
	if len(waiting) == 0 {
		delete(t.waiting, sessionID)
		return
	}
	close(waiting[0])
	t.waiting[sessionID] = waiting[1:]
}
