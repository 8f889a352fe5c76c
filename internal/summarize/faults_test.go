package summarize_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/summarize"
)

var errDown = errors.New("connection refused")

func echoes(_ context.Context, r summarize.Request) (summarize.Output, error) {
	return summarize.Output{Text: r.Prompt[:min(len(r.Prompt), 400)]}, nil
}

// TestFailures tries one span five times with each fault, and once more after a
// restart with a backend that is well again.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(context.Context, summarize.Request) (summarize.Output, error)
		asked  int
		reason string
		// limit is MaxInputTokens.
		limit uint64
	}{
		"down":          {answer: fails(errDown), asked: 3, reason: "connection refused"},
		"slow":          {answer: takes(time.Hour), asked: 3, reason: "no answer in time"},
		"permanent":     {answer: fails(fmt.Errorf("no such model: %w", summarize.ErrPermanent)), asked: 1, reason: "no such model: permanent failure"},
		"empty":         {answer: says(""), asked: 1, reason: "summary rejected: it is empty"},
		"blank":         {answer: says(" \n\t\u2003"), asked: 1, reason: "summary rejected: it is empty"},
		"not UTF-8":     {answer: says("\xff\xfe"), asked: 1, reason: "summary rejected: it is not valid UTF-8"},
		"NUL":           {answer: says("a\x00b"), asked: 1, reason: "summary rejected: it contains NUL"},
		"too long":      {answer: says(strings.Repeat("word ", 1000)), asked: 1, reason: "tokens; the limit is 200"},
		"echo":          {answer: echoes, asked: 1, reason: "word for word"},
		"no input fits": {answer: writes, limit: 300, asked: 0, reason: "max_input_tokens is 300"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := sessions(t, "s")
				w := start(t, store, &asked{answer: c.answer}, summarize.Options{})
				p := proposal("s", 8)
				p.MaxInputTokens = c.limit
				var err error
				for range 5 {
					if _, err = w.Do(t.Context(), p); err == nil {
						t.Fatal("no error")
					}
					<-time.After(5 * time.Minute) // the breaker has cooled down
				}
				var before *summarize.FailedError
				if !errors.As(err, &before) || before.Attempts != max(c.asked, 1) || !strings.Contains(before.Reason, c.reason) {
					t.Errorf("at last: %v", err)
				}
				j := w.journal("s")
				if j.Status != "failed" || j.Attempts != max(c.asked, 1) || !strings.Contains(j.Reason, c.reason) || w.backend.times() != c.asked {
					t.Errorf("journal %+v, asked %d times", j, w.backend.times())
				}
				failed := 0
				for _, e := range w.events {
					if strings.HasPrefix(e, "failed s 8: ") && strings.Contains(e, c.reason) {
						failed++
					}
				}
				if failed != max(c.asked, 1) || len(w.stored("s")) != 0 {
					t.Errorf("reported %q, stored %+v", w.events, w.stored("s"))
				}
				w.Close()

				well := start(t, store, &asked{answer: writes}, summarize.Options{})
				if err := well.Resume(t.Context()); err != nil {
					t.Error(err)
				}
				p.MaxInputTokens = 0
				if _, err := well.Do(t.Context(), p); !errors.As(err, &before) || well.backend.times() != 0 {
					t.Errorf("the same span after a restart: %v", err)
				}
				if _, err := well.Do(t.Context(), proposal("s", 7)); err != nil {
					t.Errorf("another span: %v", err)
				}
				well.Close()
			})
		})
	}
}

// A summarizer that panics fails this summary and nothing else.
func TestPanickingSummarizer(t *testing.T) {
	backend := &asked{answer: func(context.Context, summarize.Request) (summarize.Output, error) { panic("secret") }}
	w := start(t, sessions(t, "s"), backend, summarize.Options{})
	if _, err := w.Do(t.Context(), proposal("s", 5)); err == nil || strings.Contains(err.Error(), "secret") {
		t.Fatal(err)
	}
	backend.answer = writes
	if _, err := w.Do(t.Context(), proposal("s", 5)); err != nil {
		t.Fatal(err)
	}
}

func TestTransientFailureThenSummary(t *testing.T) {
	backend := &asked{answer: fails(errDown)}
	w := start(t, sessions(t, "s"), backend, summarize.Options{})
	if _, err := w.Do(t.Context(), proposal("s", 5)); !errors.Is(err, errDown) {
		t.Fatal(err)
	}
	if j := w.journal("s"); j != (journal{"pending", "connection refused", 1}) {
		t.Errorf("%+v", j)
	}
	backend.answer = writes
	if _, err := w.Do(t.Context(), proposal("s", 5)); err != nil {
		t.Fatal(err)
	}
	if j := w.journal("s"); j != (journal{"done", "", 2}) {
		t.Errorf("%+v", j)
	}
}

func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &asked{answer: fails(errDown)}
		w := start(t, sessions(t, "a", "b", "c", "d"), backend, summarize.Options{})
		for _, id := range []string{"a", "b", "c"} {
			if _, err := w.Do(t.Context(), proposal(id, 5)); !errors.Is(err, errDown) {
				t.Error(err)
			}
		}
		w.expect("started a 5", "failed a 5: connection refused", "started b 5", "failed b 5: connection refused",
			"started c 5", "model open after 3", "failed c 5: connection refused")
		state := func(want summarize.BreakerState) {
			t.Helper()
			if got := w.registry.Breakers(); !slices.Equal(got, []summarize.BreakerState{want}) {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
		state(summarize.BreakerState{Summarizer: "model", Health: summarize.Open, Failures: 3})
		var open *summarize.BreakerOpenError
		for range 10 {
			if _, err := w.Do(t.Context(), proposal("a", 5)); !errors.As(err, &open) || open.Summarizer != "model" {
				t.Error(err)
			}
		}
		if backend.times() != 3 || w.journal("a").Attempts != 1 {
			t.Errorf("asked %d times, journal %+v", backend.times(), w.journal("a"))
		}
		w.expect()

		<-time.After(61 * time.Second)
		state(summarize.BreakerState{Summarizer: "model", Health: summarize.HalfOpen, Failures: 3})
		if _, err := w.Do(t.Context(), proposal("d", 5)); !errors.Is(err, errDown) {
			t.Error(err)
		}
		state(summarize.BreakerState{Summarizer: "model", Health: summarize.Open, Failures: 4})
		<-time.After(61 * time.Second)
		backend.answer = writes
		if _, err := w.Do(t.Context(), proposal("a", 5)); err != nil {
			t.Error(err)
		}
		state(summarize.BreakerState{Summarizer: "model", Health: summarize.Closed})
		w.expect("model half_open after 3", "started d 5", "model open after 4", "failed d 5: connection refused",
			"model half_open after 4", "started a 5", "model closed after 0", "ready a 5")
		w.Close()
	})
}

// mortal is a store that dies: from then on nothing reaches it any more.
type mortal struct {
	eventlog.Store
	dead bool
	// after is the kind and status after whose write it dies.
	after string
}

func (m *mortal) PutArtifacts(ctx context.Context, id string, all ...eventlog.Artifact) error {
	if m.dead {
		return &eventlog.UnavailableError{Cause: errors.New("killed")}
	}
	err := m.Store.PutArtifacts(ctx, id, all...)
	m.dead = slices.ContainsFunc(all, func(a eventlog.Artifact) bool { return m.after == a.Kind })
	return err
}

// TestKilled kills the daemon at each write, and starts another one on what is left.
func TestKilled(t *testing.T) {
	for name, c := range map[string]struct {
		after  string
		status string // that is found then
		asked  int    // in the second life
	}{
		"before the backend was asked":  {summarize.TaskKind, "pending", 1},
		"after the summary was written": {summarize.ArtifactKind, "done", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := sessions(t, "s")
				w := start(t, &mortal{Store: store, after: c.after}, &asked{answer: writes}, summarize.Options{})
				first, err := w.Do(t.Context(), proposal("s", 5))
				if (err == nil) != (c.asked == 0) {
					t.Error(err)
				}
				w.Close()
				if j := w.journal("s"); j.Status != c.status || j.Attempts != 1 {
					t.Errorf("journal %+v", j)
				}
				next := start(t, store, &asked{answer: writes}, summarize.Options{})
				if err := next.Resume(t.Context()); err != nil {
					t.Fatal(err)
				}
				second, err := next.Do(t.Context(), proposal("s", 5))
				if err != nil || next.backend.times() != c.asked || first.ID != "" && first.ID != second.ID {
					t.Errorf("%+v, %v, asked %d times", second, err, next.backend.times())
				}
				if all := next.stored("s"); len(all) != 1 || next.journal("s").Status != "done" {
					t.Errorf("stored %+v, journal %+v", all, next.journal("s"))
				}
				next.Close()
			})
		})
	}
}

// TestKilledAgainAndAgain: a span that takes the daemon down with it is given up.
func TestKilledAgainAndAgain(t *testing.T) {
	store := sessions(t, "s")
	for range 3 {
		w := start(t, &mortal{Store: store, after: summarize.TaskKind}, &asked{answer: writes}, summarize.Options{})
		if _, err := w.Do(t.Context(), proposal("s", 5)); err == nil {
			t.Fatal("no error")
		}
		w.Close()
	}
	w := start(t, store, &asked{answer: writes}, summarize.Options{})
	var before *summarize.FailedError
	if _, err := w.Do(t.Context(), proposal("s", 5)); !errors.As(err, &before) || before.Reason != "interrupted" || w.backend.times() != 0 {
		t.Error(err)
	}
}

// TestResumeLeavesWhatWasOvertaken: a newer summary makes the older span's needless.
func TestResumeLeavesWhatWasOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := sessions(t, "s")
		backend := &asked{answer: fails(errDown)}
		w := start(t, store, backend, summarize.Options{})
		if _, err := w.Do(t.Context(), proposal("s", 3)); !errors.Is(err, errDown) {
			t.Fatal(err)
		}
		backend.answer = writes
		if _, err := w.Do(t.Context(), proposal("s", 5)); err != nil {
			t.Fatal(err)
		}
		w.Close()
		next := start(t, store, &asked{answer: writes}, summarize.Options{})
		if err := next.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if next.backend.times() != 0 {
			t.Errorf("asked %d times", next.backend.times())
		}
		next.Close()
	})
}

func TestNothingToSummarise(t *testing.T) {
	w := start(t, sessions(t, "s"), &asked{answer: writes}, summarize.Options{})
	w.empty = true
	var invalid *eventlog.InvalidError
	if _, err := w.Do(t.Context(), proposal("s", 5)); !errors.As(err, &invalid) || invalid.Field != "to" || w.backend.times() != 0 {
		t.Error(err)
	}
	w.empty = false
	if _, err := w.Do(t.Context(), proposal("s", 5)); err != nil {
		t.Error(err)
	}
}

// TestDamagedJournal: a session whose tasks cannot be read does not keep the others
// from going on.
func TestDamagedJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := sessions(t, "a", "b", "c")
		w := start(t, store, &asked{answer: fails(errDown)}, summarize.Options{})
		for _, id := range []string{"a", "b"} {
			if _, err := w.Do(t.Context(), proposal(id, 5)); !errors.Is(err, errDown) {
				t.Fatal(err)
			}
		}
		w.Close()
		for a, err := range store.Artifacts(t.Context(), "a", eventlog.ArtifactQuery{Kind: summarize.TaskKind}) {
			if err != nil {
				t.Fatal(err)
			}
			a.Value = []byte("{")
			if err := store.PutArtifacts(t.Context(), "a", a); err != nil {
				t.Fatal(err)
			}
		}
		next := start(t, store, &asked{answer: writes}, summarize.Options{})
		if err := next.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(next.stored("a")) != 0 || len(next.stored("b")) != 1 {
			t.Errorf("%+v, %+v", next.stored("a"), next.stored("b"))
		}
		var corrupt *eventlog.CorruptError
		if _, err := next.Do(t.Context(), proposal("a", 5)); !errors.As(err, &corrupt) {
			t.Error(err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := next.Resume(ended); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		next.Close()
	})
}

// lists is a store whose sessions are deleted once they are listed.
type lists struct{ eventlog.Store }

func (s lists) ListSessions(ctx context.Context, q eventlog.SessionQuery) ([]eventlog.Session, error) {
	all, err := s.Store.ListSessions(ctx, q)
	for _, session := range all {
		err = errors.Join(err, s.DeleteSession(ctx, session.ID, session.Incarnation, nil))
	}
	return all, err
}

// TestResumeBesideDeletion: that a session is gone before its tasks are read is nobody's fault.
func TestResumeBesideDeletion(t *testing.T) {
	var logged strings.Builder
	w := start(t, lists{sessions(t, "a", "b")}, &asked{answer: writes}, summarize.Options{
		Logger: slog.New(slog.NewTextHandler(&logged, nil)),
	})
	if err := w.Resume(t.Context()); err != nil || logged.Len() > 0 {
		t.Errorf("%v\n%s", err, &logged)
	}
}
