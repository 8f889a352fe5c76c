package summarize_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/extractive"
	"github.com/contextd/contextd/internal/summarize/prompt"
	"github.com/contextd/contextd/internal/summarize/pull"
)

func memStore(f *testing.F) *memlog.Store {
	store := memlog.New()
	if _, err := store.CreateSession(f.Context(), eventlog.Session{ID: "s"}); err != nil {
		f.Fatal(err)
	}
	return store
}

// settles is a backend that notes what becomes of its texts.
type settles struct {
	asked
	settled []string
}

func (s *settles) Settled(r summarize.Request, sum summarize.Summary, err error) {
	s.settled = append(s.settled, fmt.Sprintf("%d %q %v", r.Chunk, sum.Text, err))
}

// long makes a session of ten messages of about 200 tokens.
func long(t *testing.T) *memlog.Store {
	store := memlog.New()
	var events []eventlog.Event
	for i := range 10 {
		events = append(events, logtest.Message(fmt.Sprint(i), eventlog.RoleAssistant, eventlog.Text{Text: fmt.Sprintf("message_%d ", i) + strings.Repeat("word ", 200)}))
	}
	commit, err := store.Append(t.Context(), "s", eventlog.Batch{Events: events, Time: epoch})
	if err == nil {
		_, err = commit.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// TestChunks: each text extends the one before, and all of them make one summary.
func TestChunks(t *testing.T) {
	backend := &settles{}
	backend.answer = func(_ context.Context, r summarize.Request) (summarize.Output, error) {
		return summarize.Output{Text: fmt.Sprintf("%s+%d", r.Older, len(r.Groups)), InputTokens: 1000, OutputTokens: 10}, nil
	}
	w := start(t, long(t), backend, summarize.Options{})
	p := proposal("s", 10)
	p.MaxInputTokens = gauge.Text(prompt.Instructions{}.System(200)) + 1000
	got, err := w.Do(t.Context(), p)
	if err != nil || got.Text != "+4+4+2" || got.InputTokens != 3000 || got.OutputTokens != 30 || got.From != 1 || got.To != 10 {
		t.Fatalf("%+v, %v", got, err)
	}
	if want := `[0 "" <nil> 1 "" <nil> 2 "+4+4+2" <nil>]`; fmt.Sprint(backend.settled) != want {
		t.Errorf("settled %s", backend.settled)
	}
	for i, r := range backend.requests {
		older := strings.Contains(r.Prompt, "The earlier record")
		if r.Chunk != i || r.TaskID != backend.requests[0].TaskID || older != (i > 0) || !strings.Contains(r.Prompt, fmt.Sprintf("message_%d ", i*4)) {
			t.Errorf("request %d: %+v", i, r)
		}
	}
	if len(w.stored("s")) != 1 {
		t.Errorf("%+v", w.stored("s"))
	}
}

// TestRejectedChunk: one bad text ends the task, and its writer hears of it.
func TestRejectedChunk(t *testing.T) {
	backend := &settles{}
	backend.answer = func(_ context.Context, r summarize.Request) (summarize.Output, error) {
		return summarize.Output{Text: strings.Repeat("x", 1-r.Chunk)}, nil
	}
	w := start(t, long(t), backend, summarize.Options{})
	p := proposal("s", 10)
	p.MaxInputTokens = gauge.Text(prompt.Instructions{}.System(200)) + 1000
	var rejected *summarize.RejectedError
	if _, err := w.Do(t.Context(), p); !errors.As(err, &rejected) {
		t.Fatal(err)
	}
	if want := `[0 "" <nil> 1 "" summary rejected: it is empty]`; fmt.Sprint(backend.settled) != want {
		t.Errorf("settled %s", backend.settled)
	}
	if len(w.stored("s")) != 0 {
		t.Errorf("%+v", w.stored("s"))
	}
}

// TestBreakerOpensMeanwhile: a task that the failures of others stop between two
// chunks has made no attempt.
func TestBreakerOpensMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := long(t)
		for _, id := range []string{"a", "b", "c"} {
			appendTo(t, store, id, epoch)
		}
		backend := &asked{answer: func(ctx context.Context, r summarize.Request) (summarize.Output, error) {
			if r.SessionID == "s" {
				return takes(time.Minute/2)(ctx, r)
			}
			return summarize.Output{}, errDown
		}}
		w := start(t, store, backend, summarize.Options{})
		p := proposal("s", 10)
		p.MaxInputTokens = gauge.Text(prompt.Instructions{}.System(200)) + 1000
		w.Offer(p)
		synctest.Wait()
		for _, id := range []string{"a", "b", "c"} {
			if _, err := w.Do(t.Context(), proposal(id, 5)); !errors.Is(err, errDown) {
				t.Error(err)
			}
		}
		var open *summarize.BreakerOpenError
		if _, err := w.Do(t.Context(), p); !errors.As(err, &open) {
			t.Error(err)
		}
		if j := w.journal("s"); j.Status != "pending" || j.Attempts != 0 || backend.times() != 4 {
			t.Errorf("%+v, asked %d times", j, backend.times())
		}
		w.Close()
	})
}

// TestRules: what needs no model gets the span whole, and may quote it.
func TestRules(t *testing.T) {
	w := start(t, sessions(t, "s"), extractive.Backend{}, summarize.Options{})
	p := proposal("s", 8)
	p.MaxInputTokens = 1
	got, err := w.Do(t.Context(), p)
	if err != nil || !strings.Contains(got.Text, "It is mended.") || got.Model != "" || got.InputTokens == 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestPull: a worker learns what was done with its texts, the last one once it is stored.
func TestPull(t *testing.T) {
	for name, c := range map[string]struct {
		text, reason string
	}{
		"taken":    {wrote, ""},
		"rejected": {" ", "it is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			q := pull.New(0)
			w := start(t, long(t), q, summarize.Options{})
			p := proposal("s", 10)
			p.MaxInputTokens = gauge.Text(prompt.Instructions{}.System(200)) + 1000
			w.Offer(p)
			for _, text := range []string{wrote, wrote, c.text} {
				task, err := q.Lease(t.Context(), "worker", []string{"s"}, 0)
				if err != nil || task.To != 10 || task.MaxOutputTokens != 200 {
					t.Fatalf("%+v, %v", task, err)
				}
				got, err := q.Complete(t.Context(), pull.Completion{TaskID: task.ID, Text: text, Model: "theirs"})
				last := strings.HasSuffix(task.ID, ".2")
				var rejected *summarize.RejectedError
				switch stored := w.stored("s"); {
				case last && c.reason != "":
					if !errors.As(err, &rejected) || rejected.Reason != c.reason || len(stored) != 0 {
						t.Errorf("%v, stored %+v", err, stored)
					}
				case err != nil || (got.ID != "") != last:
					t.Errorf("%s: %+v, %v", task.ID, got, err)
				case last && (len(stored) != 1 || stored[0].ID != got.ID || got.Model != "theirs"):
					t.Errorf("stored %+v, got %+v", stored, got)
				}
			}
		})
	}
}
