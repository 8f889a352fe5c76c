package summarize_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/prompt"
)

func TestDoStoresOnce(t *testing.T) {
	w := start(t, sessions(t, "s"), &asked{answer: writes}, summarize.Options{})
	p := proposal("s", 5)
	p.Extends = "s2-00000000"
	got, err := w.Do(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	want := summarize.Summary{
		ID: p.SummaryID(), From: 1, To: 5, Text: wrote, Ledger: "tool ×3", Index: "view.go", Summarizer: "model", Model: "model-1",
		Instructions: prompt.Instructions{}.Fingerprint(), Extends: "s2-00000000", Time: epoch, Version: summarize.Version,
		InputTokens: got.InputTokens, OutputTokens: gauge.Text(wrote),
	}
	if !reflect.DeepEqual(got, want) || got.InputTokens < 500 {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	again, err := w.Do(t.Context(), p)
	if err != nil || !reflect.DeepEqual(again, got) {
		t.Errorf("again %+v, %v", again, err)
	}
	if stored := w.stored("s"); len(stored) != 1 || !reflect.DeepEqual(stored[0], got) {
		t.Errorf("stored %+v", stored)
	}
	if w.backend.times() != 1 || w.journal("s") != (journal{"done", "", 1}) {
		t.Errorf("asked %d times, journal %+v", w.backend.times(), w.journal("s"))
	}
	w.expect("started s 5", "ready s 5")
	if !slices.Equal(w.summarized, []string{"s " + got.ID}) {
		t.Errorf("the session was notified of %q", w.summarized)
	}
	p.Instructions.Text = "Keep the weather."
	if other, err := w.Do(t.Context(), p); err != nil || other.ID == got.ID || w.backend.times() != 2 {
		t.Errorf("by other instructions: %+v, %v", other, err)
	}
}

func TestInvalidProposals(t *testing.T) {
	w := start(t, sessions(t, "s"), &asked{answer: writes}, summarize.Options{})
	for field, change := range map[string]func(*summarize.Proposal){
		"session_id":        func(p *summarize.Proposal) { p.SessionID = "" },
		"to":                func(p *summarize.Proposal) { p.From = 6 },
		"max_output_tokens": func(p *summarize.Proposal) { p.MaxOutputTokens = 0 },
		"instructions.mode": func(p *summarize.Proposal) { p.Instructions.Mode = "shout" },
		"instructions.text": func(p *summarize.Proposal) { p.Instructions.Mode = prompt.Replace },
	} {
		p := proposal("s", 5)
		change(&p)
		var invalid *eventlog.InvalidError
		if _, err := w.Do(t.Context(), p); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
		w.Offer(p)
	}
	var unknown *summarize.UnknownError
	other := proposal("s", 5)
	other.Summarizer = "other"
	if _, err := w.Do(t.Context(), other); !errors.As(err, &unknown) || unknown.Summarizer != "other" {
		t.Errorf("of no summarizer: %v", err)
	}
	var invalid *eventlog.InvalidError
	if _, err := w.Do(t.Context(), proposal("s", 99)); !errors.As(err, &invalid) || invalid.Field != "to" {
		t.Errorf("after the head: %v", err)
	}
	var missing *eventlog.NotFoundError
	if _, err := w.Do(t.Context(), proposal("nobody", 5)); !errors.As(err, &missing) || missing.Kind != "session" {
		t.Errorf("no session: %v", err)
	}
	if w.backend.times() != 0 {
		t.Errorf("asked %d times", w.backend.times())
	}
}

// TestAtOnce: callers share one attempt, a session has one at a time, and the workers
// bound them all.
func TestAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ids []string
		for i := range 5 {
			ids = append(ids, fmt.Sprint("s", i))
		}
		w := start(t, sessions(t, ids...), &asked{answer: takes(time.Second)}, summarize.Options{Workers: 3})
		begin := time.Now()
		var group sync.WaitGroup
		for _, id := range ids {
			for _, to := range []eventlog.Seq{3, 5, 7} {
				for range 4 {
					w.Offer(proposal(id, to))
					group.Go(func() {
						if s, err := w.Do(t.Context(), proposal(id, to)); err != nil || s.To != to {
							t.Errorf("%s up to %d: %+v, %v", id, to, s, err)
						}
					})
				}
			}
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("Offer took %s", took)
		}
		group.Wait()
		if w.backend.times() != 15 || w.backend.most != 3 || w.backend.twice {
			t.Errorf("asked %d times, %d at once, two of a session at once: %v", w.backend.times(), w.backend.most, w.backend.twice)
		}
		if took := time.Since(begin); took > 7*time.Second {
			t.Errorf("15 requests of a second took %s with three workers", took)
		}
		w.Close()
	})
}

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, sessions(t, "s"), &asked{answer: takes(time.Second)}, summarize.Options{MaxQueue: 2})
		w.Offer(proposal("s", 3))
		synctest.Wait() // it runs
		for to := eventlog.Seq(4); to <= 8; to++ {
			w.Offer(proposal("s", to))
		}
		if _, err := w.Do(t.Context(), proposal("s", 8)); err != nil {
			t.Error(err)
		}
		if n := len(w.stored("s")); n != 4 {
			t.Errorf("%d summaries of one running, two waiting and one waited for", n)
		}
		w.Close()
	})
}

func TestDoEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, sessions(t, "s"), &asked{answer: takes(10 * time.Second)}, summarize.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.Do(ctx, proposal("s", 5)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if _, err := w.Do(t.Context(), proposal("s", 5)); err != nil || w.backend.times() != 1 {
			t.Errorf("joined late: %v, asked %d times", err, w.backend.times())
		}
		w.Close()
	})
}

// TestJoin: those who ask for the same while it is on get the same error, from one
// attempt.
func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &asked{answer: func(context.Context, summarize.Request) (summarize.Output, error) {
			<-time.After(time.Second)
			return summarize.Output{}, errDown
		}}
		w := start(t, sessions(t, "s"), backend, summarize.Options{})
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				if _, err := w.Do(t.Context(), proposal("s", 5)); !errors.Is(err, errDown) {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if backend.times() != 1 || w.journal("s").Attempts != 1 {
			t.Errorf("asked %d times, journal %+v", backend.times(), w.journal("s"))
		}
		w.Close()
	})
}

// TestCloseIsNoFailure: what is cut off does not open the breaker.
func TestCloseIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, sessions(t, "a", "b", "c"), &asked{answer: takes(time.Hour)}, summarize.Options{Workers: 3})
		for _, id := range []string{"a", "b", "c"} {
			w.Offer(proposal(id, 5))
			synctest.Wait()
		}
		w.Close()
		w.expect("started a 5", "started b 5", "started c 5")
		if got := w.registry.Breakers(); got[0] != (summarize.BreakerState{Summarizer: "model", Health: summarize.Closed}) {
			t.Errorf("%+v", got)
		}
	})
}

// TestClose: what was cut off is neither an attempt nor lost.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := sessions(t, "s", "waits")
		w := start(t, store, &asked{answer: takes(time.Hour)}, summarize.Options{Workers: 1})
		errs := make(chan error, 2)
		for _, id := range []string{"s", "waits"} {
			go func() {
				_, err := w.Do(t.Context(), proposal(id, 5))
				errs <- err
			}()
			synctest.Wait()
		}
		w.Close()
		for range 2 {
			if err := <-errs; !errors.Is(err, summarize.ErrClosed) {
				t.Error(err)
			}
		}
		w.expect("started s 5")
		if j := w.journal("s"); j != (journal{"pending", "", 0}) {
			t.Errorf("journal %+v", j)
		}
		if _, err := w.Do(t.Context(), proposal("s", 5)); !errors.Is(err, summarize.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		w.Offer(proposal("s", 5))

		next := start(t, store, &asked{answer: writes}, summarize.Options{})
		if err := next.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(next.stored("s")) != 1 || next.journal("s").Status != "done" {
			t.Errorf("resumed: %+v, %+v", next.stored("s"), next.journal("s"))
		}
		next.Close()
	})
}

func TestForkUsesWhatItsParentHas(t *testing.T) {
	store := sessions(t, "s")
	w := start(t, store, &asked{answer: writes}, summarize.Options{})
	want, err := w.Do(t.Context(), proposal("s", 5))
	if err != nil {
		t.Fatal(err)
	}
	for id, at := range map[string]eventlog.Seq{"after": 6, "inside": 4} {
		if _, err := store.Fork(t.Context(), eventlog.ForkRequest{ParentID: "s", At: at, NewID: id, Time: epoch}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := w.Do(t.Context(), proposal("after", 5)); err != nil || !reflect.DeepEqual(got, want) || w.backend.times() != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if all := w.stored("inside"); len(all) != 0 {
		t.Errorf("a fork inside the span has %+v", all)
	}
}

// TestSessionMadeAnew: a summary of a session that was deleted does not go to another
// one of the same name.
func TestSessionMadeAnew(t *testing.T) {
	store := sessions(t, "s")
	backend := &asked{}
	backend.answer = func(ctx context.Context, r summarize.Request) (summarize.Output, error) {
		if err := store.DeleteSession(ctx, "s", 0, nil); err != nil {
			t.Error(err)
		}
		appendTo(t, store, "s", epoch.Add(time.Second))
		return writes(ctx, r)
	}
	w := start(t, store, backend, summarize.Options{})
	var missing *eventlog.NotFoundError
	if _, err := w.Do(t.Context(), proposal("s", 5)); !errors.As(err, &missing) {
		t.Errorf("stored for another session: %v", err)
	}
	if all := w.stored("s"); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

// TestForgottenSessions: what waits and what runs for a session that was deleted ends,
// and only that; nobody's breaker counts it.
func TestForgottenSessions(t *testing.T) {
	store := sessions(t, "s", "t")
	backend := &asked{answer: func(ctx context.Context, _ summarize.Request) (summarize.Output, error) {
		<-ctx.Done()
		return summarize.Output{}, ctx.Err()
	}}
	w := start(t, store, backend, summarize.Options{})
	of := func(id string, to eventlog.Seq) summarize.Proposal {
		session, err := store.Session(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		p := proposal(id, to)
		p.Of = session.Incarnation
		return p
	}
	running, waiting, other := of("s", 5), of("s", 4), of("t", 5)
	errs := map[string]chan error{"running": make(chan error, 1), "waiting": make(chan error, 1), "other": make(chan error, 1)}
	for name, p := range map[string]summarize.Proposal{"running": running, "waiting": waiting, "other": other} {
		go func() {
			_, err := w.Do(context.Background(), p)
			errs[name] <- err
		}()
	}
	for backend.times() < 2 {
		runtime.Gosched()
	}
	w.Forget("s", other.Of) // another incarnation: nothing ends
	if err := store.DeleteSession(t.Context(), "s", 0, nil); err != nil {
		t.Fatal(err)
	}
	w.Forget("s", running.Of)
	var missing *eventlog.NotFoundError
	for _, name := range []string{"running", "waiting"} {
		if err := <-errs[name]; !errors.As(err, &missing) || missing.Name != "s" {
			t.Errorf("%s ended with %v", name, err)
		}
	}
	select {
	case err := <-errs["other"]:
		t.Errorf("the other session's ended with %v", err)
	default:
	}
	appendTo(t, store, "s", epoch)
	if _, err := w.Do(t.Context(), running); !errors.As(err, &missing) {
		t.Errorf("carried out for another session: %v", err)
	}
	if b := w.registry.Breakers()[0]; b.Failures != 0 {
		t.Errorf("%+v", b)
	}
	w.Close()
	if err := <-errs["other"]; !errors.Is(err, summarize.ErrClosed) {
		t.Errorf("the other session's ended with %v", err)
	}
}
