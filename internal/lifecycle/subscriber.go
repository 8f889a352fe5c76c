package lifecycle

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

const (
	// maxWaiting is the most PostCompact calls in the queue of one subscriber; each may have a summary.
	maxWaiting = 64
	// maxAnswered is how many answered calls are remembered, to refuse a second answer.
	maxAnswered = 1024
)

// Subscriber is one runtime's end of the hooks. One goroutine at a time may use Calls; the other methods may be
// called from any.
type Subscriber struct {
	hooks    *Hooks
	want     Subscription
	sessions filter
	prefix   string // of the ids of its calls
	wake     chan struct{}
	done     chan struct{}
	close    sync.Once

	mu     sync.Mutex
	queue  []*delivery // not yet handed out
	issued uint64      // how many calls were handed out, which is also the newest one's number
	// asked are the PreCompact calls that were handed out and wait for an answer.
	asked    map[string]*delivery
	answered map[uint64]struct{} // by the call's number
	order    []uint64            // of answered, oldest first
	overdue  bool                // it did not answer its last PreCompact call in time
	lost     uint64
}

// delivery is a call to a subscriber that is not finished.
type delivery struct {
	call Call
	// replied is closed once reply is set; nil in PostCompact calls.
	replied chan struct{}
	reply   *Reply
}

func newSubscriber(h *Hooks, want Subscription, prefix string) *Subscriber {
	return &Subscriber{
		hooks:    h,
		want:     want,
		sessions: filterOf(want.Sessions),
		prefix:   prefix,
		wake:     make(chan struct{}, 1),
		done:     make(chan struct{}),
		asked:    map[string]*delivery{},
		answered: map[uint64]struct{}{},
	}
}

func (s *Subscriber) serves(h Hook) bool {
	return h == PreCompact && s.want.PreCompact || h == PostCompact && s.want.PostCompact
}

// Calls yields calls as they come, until ctx ends or the subscriber is closed. While a session's PreCompact call
// waits for its answer, no other call of that session is yielded.
func (s *Subscriber) Calls(ctx context.Context) iter.Seq[Call] {
	return func(yield func(Call) bool) {
		for {
			c, ok := s.next(ctx)
			if !ok || !yield(c) {
				return
			}
		}
	}
}

// Lost returns how many PostCompact calls were dropped because too many waited.
func (s *Subscriber) Lost() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// note records whether the subscriber missed the deadline of its newest PreCompact call.
func (s *Subscriber) note(overdue bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.overdue = overdue
}

// Close ends the subscription and the waits for its answers. It may be called more than once.
func (s *Subscriber) Close() {
	s.close.Do(func() {
		s.hooks.remove(s)
		close(s.done)
	})
}

func (s *Subscriber) next(ctx context.Context) (Call, bool) {
	for {
		select {
		case <-s.done:
			return Call{}, false
		case <-ctx.Done():
			return Call{}, false
		default:
		}
		if c, ok := s.take(); ok {
			return c, true
		}
		select {
		case <-s.wake:
		case <-s.done:
		case <-ctx.Done():
		}
	}
}

// take removes from the queue and returns the first call whose session does not wait for an answer.
func (s *Subscriber) take() (Call, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, d := range s.queue {
		if s.asking(d.call.SessionID) {
			continue
		}
		s.queue = slices.Delete(s.queue, i, i+1)
		s.issued++
		d.call.ID = s.prefix + strconv.FormatUint(s.issued, 10) + "." + string(d.call.Hook)
		if d.replied != nil {
			s.asked[d.call.ID] = d
		}
		return d.call, true
	}
	return Call{}, false
}

func (s *Subscriber) asking(sessionID string) bool {
	for _, d := range s.asked {
		if d.call.SessionID == sessionID {
			return true
		}
	}
	return false
}

// notify queues a PostCompact call. If the queue is full, the oldest one is dropped.
func (s *Subscriber) notify(c Call) {
	s.mu.Lock()
	isPost := func(d *delivery) bool { return d.replied == nil }
	waiting := 0
	for _, d := range s.queue {
		if isPost(d) {
			waiting++
		}
	}
	if waiting == maxWaiting {
		i := slices.IndexFunc(s.queue, isPost)
		s.queue = slices.Delete(s.queue, i, i+1)
		s.lost++
	}
	s.queue = append(s.queue, &delivery{call: c})
	s.mu.Unlock()
	signal(s.wake)
}

// outcome says how a call to a subscriber ended.
type outcome int

const (
	replied outcome = iota
	late
	gone
	canceled
)

// HookOutcome says how a PreCompact call to a subscriber ended.
type HookOutcome string

// The outcomes of hooks.
const (
	HookAllowed  HookOutcome = "allowed"
	HookModified HookOutcome = "modified"
	HookVetoed   HookOutcome = "vetoed"
	HookTimedOut HookOutcome = "timed_out"
	// HookGone: the subscriber disconnected before it answered.
	HookGone HookOutcome = "disconnected"
	// HookCanceled: the compaction was canceled before the subscriber answered.
	HookCanceled HookOutcome = "canceled"
)

func (o outcome) of(r Reply) HookOutcome {
	switch {
	case o == late:
		return HookTimedOut
	case o == gone:
		return HookGone
	case o == canceled:
		return HookCanceled
	case r.Decision == Block:
		return HookVetoed
	case r.Decision == Modify:
		return HookModified
	default:
		return HookAllowed
	}
}

// ask waits for the answer to a PreCompact call. The deadline runs from now on, even if the subscriber does not take
// the call.
func (s *Subscriber) ask(ctx context.Context, c Call) (Reply, outcome) {
	d := &delivery{call: c, replied: make(chan struct{})}
	s.mu.Lock()
	s.queue = append(s.queue, d)
	s.mu.Unlock()
	signal(s.wake)
	deadline := time.NewTimer(s.want.Deadline)
	defer deadline.Stop()
	how := replied
	select {
	case <-d.replied:
	case <-deadline.C:
		how = late
	case <-s.done:
		how = gone
	case <-ctx.Done():
		how = canceled
	}
	return s.settle(d, how)
}

// settle withdraws the call, unless an answer came first.
func (s *Subscriber) settle(d *delivery, how outcome) (Reply, outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.reply != nil {
		return *d.reply, replied
	}
	delete(s.asked, d.call.ID)
	s.queue = slices.DeleteFunc(s.queue, func(other *delivery) bool { return other == d })
	signal(s.wake) // the session may have the next call now
	return Reply{}, how
}

// Reply accepts the answer to a call, and ignores one after the deadline. It returns an *eventlog.InvalidError if the
// call is not this subscriber's, takes no answer or has one, or if the answer contradicts itself.
func (s *Subscriber) Reply(r Reply) error {
	if err := r.check(); err != nil {
		return err
	}
	bad := func(reason string) error { return &eventlog.InvalidError{Field: "call_id", Reason: reason} }
	s.mu.Lock()
	defer s.mu.Unlock()
	number, hook, ok := s.parseID(r.CallID)
	if !ok {
		return bad("names no call that this stream was sent")
	}
	if hook == PostCompact {
		return bad("names a post_compact call, which takes no reply")
	}
	if _, twice := s.answered[number]; twice {
		return bad("names a call that was replied to before")
	}
	d := s.asked[r.CallID]
	if d == nil {
		return nil // too late
	}
	delete(s.asked, r.CallID)
	s.remember(number)
	d.reply = &r
	close(d.replied)
	signal(s.wake) // the session may have the next call now
	return nil
}

// parseID splits the id of a call that was handed out.
func (s *Subscriber) parseID(id string) (number uint64, hook Hook, ok bool) {
	rest, mine := strings.CutPrefix(id, s.prefix)
	digits, kind, _ := strings.Cut(rest, ".")
	number, err := strconv.ParseUint(digits, 10, 64)
	hook = Hook(kind)
	ok = mine && err == nil && 0 < number && number <= s.issued &&
		strconv.FormatUint(number, 10) == digits && s.serves(hook)
	return number, hook, ok
}

// remember notes that a call was answered. Beyond maxAnswered it forgets the oldest: a second answer to that one
// would be mistaken for a late one.
func (s *Subscriber) remember(number uint64) {
	if len(s.order) == maxAnswered {
		delete(s.answered, s.order[0])
		s.order = s.order[1:]
	}
	s.order = append(s.order, number)
	s.answered[number] = struct{}{}
}
