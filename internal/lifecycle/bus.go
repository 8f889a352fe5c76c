package lifecycle

import (
	"context"
	"iter"
	"strconv"
	"sync"
	"time"
)

// DefaultBacklog is how many events may wait for a watcher if BusOptions do not say.
const DefaultBacklog = 1024

// BusOptions configure a bus.
type BusOptions struct {
	// Backlog is how many events may wait for one watcher; 0 is DefaultBacklog.
	Backlog int
	// Observe, if set, is called once with every event, even if nobody watches, and with every EventsLost that a
	// watcher gets. It must not block.
	Observe func(Event)
}

// Bus notifies watchers of events. Its methods may be called from any goroutine.
type Bus struct {
	backlog int
	observe func(Event)

	// mu is held during a whole Publish, so that all watchers get events in the same order.
	mu       sync.Mutex
	watchers map[*Watcher]struct{}
}

// NewBus returns a bus without watchers.
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

// Subscribe returns a watcher of the events that are published from now on, of these sessions (all if there are none)
// and of no session. The caller must close it.
func (b *Bus) Subscribe(sessions []string) *Watcher { return b.subscribe(sessions, nil) }

// subscribe returns a watcher that gets only the names of the named sessions when these have new events, because the
// events themselves are read from the store. At first all of them are due.
func (b *Bus) subscribe(sessions, named []string) *Watcher {
	w := &Watcher{
		bus:      b,
		sessions: filterOf(sessions),
		named:    make(map[string]bool, len(named)),
		wake:     make(chan struct{}, 1),
		done:     make(chan struct{}),
	}
	for _, id := range named {
		w.mark(id)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watchers[w] = struct{}{}
	return w
}

// Watcher receives the events of a bus. One goroutine at a time may use Events.
type Watcher struct {
	bus      *Bus
	sessions filter
	wake     chan struct{}
	done     chan struct{}
	close    sync.Once

	mu      sync.Mutex
	waiting []Event // at most the bus's backlog
	// lost counts the dropped events before those in waiting; lostTime is the time of the newest.
	lost     uint64
	lostTime time.Time
	// named has the sessions whose events are read from the store, and whether that is due. due has those that are
	// due, in the order in which they became so. dueLast says that take last returned one of these, and not an event.
	named   map[string]bool
	due     []string
	dueLast bool
}

// Events yields events as they come, until ctx ends or the watcher is closed. It may be called again, and goes on
// where the last call stopped.
func (w *Watcher) Events(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for {
			e, _, ok := w.next(ctx)
			if !ok || !yield(e) {
				return
			}
		}
	}
}

// Close ends the watch and drops waiting events. It may be called more than once.
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
	_, named := w.named[e.SessionID]
	switch {
	case named:
		w.mark(e.SessionID)
	case len(w.waiting) == w.bus.backlog:
		w.lost++
		w.lostTime = w.waiting[0].Time
		w.waiting[0] = Event{} // because the array would keep it in memory
		w.waiting = append(w.waiting[1:], e)
	default:
		w.waiting = append(w.waiting, e)
	}
	w.mu.Unlock()
	signal(w.wake)
}

// mark makes a named session due, unless it is already.
func (w *Watcher) mark(sessionID string) {
	if !w.named[sessionID] {
		w.named[sessionID] = true
		w.due = append(w.due, sessionID)
	}
}

// next waits for an event, or for a named session to be due.
func (w *Watcher) next(ctx context.Context) (e Event, due string, ok bool) {
	for {
		select {
		case <-w.done:
			return Event{}, "", false
		case <-ctx.Done():
			return Event{}, "", false
		default:
		}
		if e, due, ok := w.take(); ok {
			return e, due, true
		}
		select {
		case <-w.wake:
		case <-w.done:
		case <-ctx.Done():
		}
	}
}

// take returns the oldest event (before it, an EventsLost if some were lost) and the sessions that are due,
// alternately.
func (w *Watcher) take() (e Event, due string, ok bool) {
	w.mu.Lock()
	if w.lost > 0 {
		e := Event{Type: EventsLost, Time: w.lostTime, Attributes: map[string]string{AttributeCount: strconv.FormatUint(w.lost, 10)}}
		w.lost = 0
		w.mu.Unlock()
		w.bus.observe(e)
		return e, "", true
	}
	defer w.mu.Unlock()
	switch {
	case len(w.due) > 0 && (!w.dueLast || len(w.waiting) == 0):
		due, w.due = w.due[0], w.due[1:]
		w.named[due], w.dueLast = false, true
		return Event{}, due, true
	case len(w.waiting) > 0:
		e = w.waiting[0]
		w.waiting[0] = Event{}
		w.waiting, w.dueLast = w.waiting[1:], false
		return e, "", true
	default:
		return Event{}, "", false
	}
}

// signal wakes the receiver of the channel, now or when it next waits.
func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// filter is a set of sessions; an empty one has all.
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
