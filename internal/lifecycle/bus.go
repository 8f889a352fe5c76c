package lifecycle

import (
	"context"
	"iter"
	"strconv"
	"sync"
	"time"
)

// DefaultBacklog is how many events wait for a watcher where BusOptions do not
// say.
const DefaultBacklog = 1024

// BusOptions say how a bus works.
type BusOptions struct {
	// Backlog is how many events may wait for one watcher; 0 is DefaultBacklog.
	Backlog int
	// Observe, if set, is notified of every event once, whoever watches, and of every
	// EventsLost that a watcher is given. It must not block.
	Observe func(Event)
}

// Bus notifies watchers of events. Its methods may be called from any goroutine.
type Bus struct {
	backlog int
	observe func(Event)

	// mu is held over a whole Publish, so that all watchers see one order.
	mu       sync.Mutex
	watchers map[*Watcher]struct{}
}

// NewBus returns a bus that nobody watches.
func NewBus(o BusOptions) *Bus {
	if o.Backlog <= 0 {
		o.Backlog = DefaultBacklog
	}
	if o.Observe == nil {
		o.Observe = func(Event) {}
	}
	return &Bus{backlog: o.Backlog, observe: o.Observe, watchers: map[*Watcher]struct{}{}}
}

// Publish notifies all watchers of the event's session. It never waits for any of them.
func (b *Bus) Publish(e Event) {
	b.observe(e)
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := range b.watchers {
		if e.SessionID == "" || w.sessions.has(e.SessionID) {
			w.push(e)
		}
	}
}

// Subscribe returns a watcher of what is published from now on to these sessions,
// or to all if there are none, and of what is of no session. It must be closed.
func (b *Bus) Subscribe(sessions []string) *Watcher {
	w := &Watcher{
		bus:      b,
		sessions: filterOf(sessions),
		wake:     make(chan struct{}, 1),
		done:     make(chan struct{}),
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watchers[w] = struct{}{}
	return w
}

// Watcher receives the events of a bus. Events is for one goroutine at a time.
type Watcher struct {
	bus      *Bus
	sessions filter
	wake     chan struct{}
	done     chan struct{}
	close    sync.Once

	mu      sync.Mutex
	waiting []Event // at most the bus's backlog
	// lost counts what was dropped in front of waiting, until lostTime.
	lost     uint64
	lostTime time.Time
}

// Events yields events as they come, until ctx ends or the watcher is closed. It
// may be called again and goes on where the last one stopped.
func (w *Watcher) Events(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for {
			e, ok := w.next(ctx)
			if !ok || !yield(e) {
				return
			}
		}
	}
}

// Close ends the watch; what waits is dropped. It may be called more than once.
func (w *Watcher) Close() {
	w.close.Do(func() {
		w.bus.mu.Lock()
		delete(w.bus.watchers, w)
		w.bus.mu.Unlock()
		close(w.done)
	})
}

func (w *Watcher) push(e Event) {
	w.mu.Lock()
	if len(w.waiting) == w.bus.backlog {
		w.lost++
		w.lostTime = w.waiting[0].Time
		w.waiting[0] = Event{} // the array holds it still
		w.waiting = w.waiting[1:]
	}
	w.waiting = append(w.waiting, e)
	w.mu.Unlock()
	signal(w.wake)
}

func (w *Watcher) next(ctx context.Context) (Event, bool) {
	for {
		select {
		case <-w.done:
			return Event{}, false
		case <-ctx.Done():
			return Event{}, false
		default:
		}
		if e, ok := w.take(); ok {
			return e, true
		}
		select {
		case <-w.wake:
		case <-w.done:
		case <-ctx.Done():
		}
	}
}

// take returns the oldest event, or before it how many were lost.
func (w *Watcher) take() (Event, bool) {
	w.mu.Lock()
	if w.lost > 0 {
		e := Event{Type: EventsLost, Time: w.lostTime, Attributes: map[string]string{AttributeCount: strconv.FormatUint(w.lost, 10)}}
		w.lost = 0
		w.mu.Unlock()
		w.bus.observe(e)
		return e, true
	}
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		return Event{}, false
	}
	e := w.waiting[0]
	w.waiting[0] = Event{}
	w.waiting = w.waiting[1:]
	return e, true
}

// signal wakes who waits on the channel, now or when it next does.
func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// filter is a set of sessions; an empty one is all of them.
type filter map[string]struct{}

func filterOf(sessions []string) filter {
	f := filter{}
	for _, id := range sessions {
		f[id] = struct{}{}
	}
	return f
}

func (f filter) has(id string) bool {
	_, ok := f[id]
	return ok || len(f) == 0
}
