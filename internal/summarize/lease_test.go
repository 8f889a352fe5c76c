package summarize_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/summarize"
)

// leases are those of a store that several processes write to.
type leases struct {
	sync.Mutex
	holder map[string]*process
	until  map[string]time.Time
}

// process is one of them. One that is cut off cannot renew.
type process struct {
	*memlog.Store
	all *leases
	cut bool
}

func (p *process) Capabilities() eventlog.Capabilities { return eventlog.Capabilities{} }

func (p *process) Lease(ctx context.Context, id string, of eventlog.Incarnation, work string, d time.Duration) (bool, error) {
	if _, err := p.Store.Lease(ctx, id, of, work, d); err != nil {
		return false, err
	}
	p.all.Lock()
	defer p.all.Unlock()
	if p.cut {
		return false, &eventlog.UnavailableError{Cause: errors.New("cut off"), Passing: true}
	}
	if p.all.holder[id] != nil && p.all.holder[id] != p && p.all.until[id].After(time.Now()) {
		return false, nil
	}
	p.all.holder[id], p.all.until[id] = p, time.Now().Add(d)
	return true, nil
}

func (p *process) Release(_ context.Context, id string, _ eventlog.Incarnation, _ string) error {
	p.all.Lock()
	defer p.all.Unlock()
	if p.all.holder[id] == p {
		delete(p.all.holder, id)
	}
	return nil
}

// two are processes on one store.
func two(store *memlog.Store) (one, other *process) {
	all := &leases{holder: map[string]*process{}, until: map[string]time.Time{}}
	return &process{Store: store, all: all}, &process{Store: store, all: all}
}

// TestTwoProcesses: of two processes that are asked for the same summary one makes it, however long
// that takes, and both return it. Each goes on with its other sessions meanwhile.
func TestTwoProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := two(sessions(t, "s", "t"))
		backend := &asked{answer: func(ctx context.Context, r summarize.Request) (summarize.Output, error) {
			return takes(map[string]time.Duration{"s": 50 * time.Second, "t": time.Second}[r.SessionID])(ctx, r)
		}}
		a, b := start(t, one, backend, summarize.Options{Workers: 1}), start(t, other, backend, summarize.Options{Workers: 1})
		a.Offer(proposal("s", 5))
		synctest.Wait()
		began := time.Now()
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				if made, err := b.Do(t.Context(), proposal("s", 5)); err != nil || made.Text != wrote {
					t.Errorf("%+v, %v", made, err)
				}
			})
		}
		synctest.Wait()
		if _, err := b.Do(t.Context(), proposal("t", 5)); err != nil || time.Since(began) > 5*time.Second {
			t.Errorf("another session waited %s: %v", time.Since(began), err)
		}
		group.Wait()
		if backend.times() != 2 {
			t.Errorf("asked %d times, want once a session", backend.times())
		}
		if len(b.summarized) == 0 || b.summarized[len(b.summarized)-1] != "s "+proposal("s", 5).SummaryID() {
			t.Errorf("the session was not notified of what the other process made: %q", b.summarized)
		}
		if took := time.Since(began); took > 52*time.Second {
			t.Errorf("the other process learned of it after %s", took)
		}
		a.Close()
		b.Close()
	})
}

// TestAProcessThatDied leaves its work to another when its lease is over. If it was only cut off, it
// gives its own attempt up and returns what the other made.
func TestAProcessThatDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := two(sessions(t, "s"))
		slow, quick := &asked{answer: takes(time.Hour)}, &asked{answer: takes(15 * time.Second)}
		a, b := start(t, one, slow, summarize.Options{}), start(t, other, quick, summarize.Options{})
		began := time.Now()
		late := make(chan error)
		go func() {
			_, err := a.Do(t.Context(), proposal("s", 5))
			late <- err
		}()
		synctest.Wait()
		one.all.Lock()
		one.cut = true
		one.all.Unlock()
		go func() {
			<-time.After(35 * time.Second) // of the test's own clock
			one.all.Lock()
			defer one.all.Unlock()
			one.cut = false
		}()
		if _, err := b.Do(t.Context(), proposal("s", 5)); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 60*time.Second {
			t.Errorf("it took %s", took)
		}
		if err := <-late; err != nil || time.Since(began) > 2*time.Minute {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if j := a.journal("s"); j.Status != "done" || slow.times() != 1 || quick.times() != 1 {
			t.Errorf("journal %+v, asked %d and %d times", j, slow.times(), quick.times())
		}
		a.Close()
		b.Close()
	})
}

// TestForgottenElsewhere: a session's end, and the scheduler's, end the wait for another process.
func TestForgottenElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := two(sessions(t, "s", "t"))
		for _, id := range []string{"s", "t"} {
			if has, err := one.Lease(t.Context(), id, 0, "", time.Hour); err != nil || !has {
				t.Fatal(err)
			}
		}
		w := start(t, other, &asked{answer: writes}, summarize.Options{})
		ended := make(chan error)
		for _, id := range []string{"s", "t"} {
			session, err := other.Session(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			p := proposal(id, 5)
			p.Of = session.Incarnation
			go func() {
				_, err := w.Do(t.Context(), p)
				ended <- err
			}()
			synctest.Wait()
			if id == "s" {
				w.Forget("s", p.Of)
				if err := <-ended; !errors.As(err, new(*eventlog.NotFoundError)) {
					t.Errorf("the session is gone: %v", err)
				}
			}
		}
		w.Close()
		if err := <-ended; !errors.Is(err, summarize.ErrClosed) {
			t.Errorf("the scheduler closed: %v", err)
		}
		if w.backend.times() != 0 {
			t.Errorf("asked %d times", w.backend.times())
		}
	})
}

// setBack is a store that is set back to another log with the first summary.
type setBack struct {
	*process
	backend *asked
}

func (s *setBack) ChainHead(context.Context, string, eventlog.Seq) ([]byte, error) {
	return []byte{byte(min(s.backend.times(), 1))}, nil
}

// TestSetBackMeanwhile: a summary of events that are gone is not stored beside those that have their place.
func TestSetBackMeanwhile(t *testing.T) {
	one, _ := two(sessions(t, "s"))
	backend := &asked{answer: writes}
	a := start(t, &setBack{one, backend}, backend, summarize.Options{})
	if made, err := a.Do(t.Context(), proposal("s", 5)); !errors.As(err, new(*eventlog.ConflictError)) {
		t.Errorf("%+v, %v", made, err)
	}
	if j := a.journal("s"); j.Status != "pending" {
		t.Errorf("the journal says %+v", j)
	}
	if made, err := a.Do(t.Context(), proposal("s", 5)); err != nil || made.Text != wrote {
		t.Errorf("of the log as it is now: %+v, %v", made, err)
	}
	a.Close()
}
