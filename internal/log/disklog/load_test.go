package disklog_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logtest"
)

// promises are what a store has acknowledged, and must therefore keep.
type promises struct {
	sessions map[string]*promised
	deleted  map[string]bool
}

type promised struct {
	events    map[string]eventlog.Seq
	artifacts map[string]string
	prefix    []string // of a fork: the ids it began with
	// doomed is set when a deletion was begun: it may or may not have happened.
	doomed bool
}

func newPromises() *promises {
	return &promises{sessions: map[string]*promised{}, deleted: map[string]bool{}}
}

func (p *promises) clone() *promises {
	c := &promises{sessions: map[string]*promised{}, deleted: maps.Clone(p.deleted)}
	for id, s := range p.sessions {
		c.sessions[id] = &promised{
			events: maps.Clone(s.events), artifacts: maps.Clone(s.artifacts), prefix: slices.Clone(s.prefix), doomed: s.doomed,
		}
	}
	return c
}

// load works on a store from several goroutines and notes what is acknowledged.
type load struct {
	t     *testing.T
	s     *disklog.Store
	round int

	mu    sync.Mutex
	more  *sync.Cond
	acks  int
	seen  *promises
	ended bool

	workers sync.WaitGroup
}

func startLoad(t *testing.T, s *disklog.Store, seen *promises, round int, seed uint64) *load {
	l := &load{t: t, s: s, round: round, seen: seen}
	l.more = sync.NewCond(&l.mu)
	for w := range 4 {
		l.workers.Go(func() { l.work(w, rand.New(rand.NewPCG(seed, uint64(w)))) })
	}
	return l
}

// acked notes a promise.
func (l *load) acked(f func(p *promises)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l.seen)
	l.acks++
	l.more.Broadcast()
}

// promisesAfter waits for n acknowledgements, or for the load to fail, and
// returns all promises made until then.
func (l *load) promisesAfter(n int) *promises {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.acks < n && !l.ended {
		l.more.Wait()
	}
	return l.seen.clone()
}

// doom marks in the promises the sessions whose deletion was begun since: it may have been done before a crash.
func (l *load) doom(kept *promises) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, s := range kept.sessions {
		if now := l.seen.sessions[id]; now == nil || now.doomed {
			s.doomed = true
		}
	}
}

func (l *load) stop() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.workers.Wait()
}

// running reports whether to go on after an error, which may be nil.
func (l *load) running(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	var unavailable *eventlog.UnavailableError
	switch {
	case errors.As(err, &unavailable):
		l.ended = true
		l.more.Broadcast()
	case err != nil:
		l.t.Errorf("load: %v", err)
		l.ended = true
		l.more.Broadcast()
	}
	return !l.ended
}

func (l *load) work(w int, r *rand.Rand) {
	ctx := context.Background()
	own := fmt.Sprintf("r%d-w%d", l.round, w)
	var forks []string
	for i := 0; ; i++ {
		var err error
		switch k := r.IntN(20); {
		case k == 0 && len(forks) <= 2:
			var session eventlog.Session
			id := fmt.Sprintf("%s-fork%d", own, i)
			if session, err = l.fork(ctx, own, id, r); err == nil && session.ID != "" {
				forks = append(forks, id)
			}
		case k <= 1 && len(forks) > 1:
			err = l.delete(ctx, forks[0])
			forks = forks[1:]
		case k == 2 && len(forks) > 0:
			err = l.append(ctx, forks[r.IntN(len(forks))], fmt.Sprintf("r%d-w%d-%d", l.round, w, i), r)
		case k == 3:
			err = l.put(ctx, own, fmt.Sprint(r.IntN(3)), fmt.Sprintf("r%d-%d", l.round, i))
		case k < 8:
			err = l.append(ctx, "common", fmt.Sprintf("r%d-w%d-%d", l.round, w, i), r)
		default:
			err = l.append(ctx, own, fmt.Sprintf("r%d-w%d-%d", l.round, w, i), r)
		}
		if !l.running(err) {
			return
		}
	}
}

// append appends a batch whose events say how many they are.
func (l *load) append(ctx context.Context, id, name string, r *rand.Rand) error {
	n := 1 + r.IntN(4)
	var events []eventlog.Event
	for i := range n {
		text := strings.Repeat("x", r.IntN(300))
		if r.IntN(30) == 0 {
			text = strings.Repeat(name, 2000)
		}
		events = append(events, logtest.Message(fmt.Sprintf("%s/%d/%d", name, i, n), eventlog.RoleUser, eventlog.Text{Text: text}))
	}
	c, err := l.s.Append(ctx, id, eventlog.Batch{Events: events})
	if err != nil {
		return err
	}
	receipts, err := c.Wait(ctx)
	if err != nil {
		return err
	}
	l.acked(func(p *promises) {
		s := p.sessions[id]
		if s == nil {
			s = &promised{events: map[string]eventlog.Seq{}, artifacts: map[string]string{}}
			p.sessions[id] = s
		}
		for _, r := range receipts {
			s.events[r.EventID] = r.Seq
		}
	})
	return nil
}

func (l *load) fork(ctx context.Context, parent, id string, r *rand.Rand) (eventlog.Session, error) {
	from, err := l.s.Session(ctx, parent)
	var none *eventlog.NotFoundError
	if errors.As(err, &none) {
		return eventlog.Session{}, nil
	}
	if err != nil {
		return eventlog.Session{}, err
	}
	at := eventlog.Seq(r.Uint64N(uint64(from.Head) + 1))
	session, err := l.s.Fork(ctx, eventlog.ForkRequest{ParentID: parent, At: at, NewID: id})
	if err != nil {
		return eventlog.Session{}, err
	}
	var prefix []string
	if at > 0 {
		events, err := logtest.Collect(l.s.Read(ctx, parent, 1, at))
		if err != nil {
			return eventlog.Session{}, err
		}
		for _, e := range events {
			prefix = append(prefix, e.ID)
		}
	}
	l.acked(func(p *promises) {
		p.sessions[id] = &promised{events: map[string]eventlog.Seq{}, artifacts: map[string]string{}, prefix: prefix}
	})
	return session, nil
}

func (l *load) delete(ctx context.Context, id string) error {
	l.mu.Lock()
	l.seen.sessions[id].doomed = true
	l.mu.Unlock()
	if err := l.s.DeleteSession(ctx, id, 0, nil); err != nil {
		return err
	}
	l.acked(func(p *promises) {
		delete(p.sessions, id)
		p.deleted[id] = true
	})
	return nil
}

func (l *load) put(ctx context.Context, id, name, value string) error {
	err := l.s.PutArtifacts(ctx, id, eventlog.Artifact{Kind: "k", ID: name, Value: []byte(value)})
	var none *eventlog.NotFoundError
	if errors.As(err, &none) {
		return nil
	}
	if err != nil {
		return err
	}
	l.acked(func(p *promises) { p.sessions[id].artifacts[name] = value })
	return nil
}
