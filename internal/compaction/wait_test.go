package compaction_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/summarize"
)

// patient asks for a context and allows it to wait for a summary.
func patient(wait time.Duration) assemble.Request {
	req := settings()
	req.Policy.Summaries.Wait = wait
	return req
}

func (w *world) wait(wait time.Duration) answer {
	w.t.Helper()
	out, err := w.ask(w.t.Context(), patient(wait))
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// long is how many turns force a cut.
const long = 40

func TestAnAssemblyWaitsOnlyAsLongAsItMay(t *testing.T) {
	after := func(d time.Duration) func(context.Context, summarize.Request) (summarize.Output, error) {
		return func(ctx context.Context, r summarize.Request) (summarize.Output, error) {
			select {
			case <-time.After(d):
				return writes(ctx, r)
			case <-ctx.Done():
				return summarize.Output{}, ctx.Err()
			}
		}
	}
	hangs := func(ctx context.Context, _ summarize.Request) (summarize.Output, error) {
		<-ctx.Done()
		return summarize.Output{}, ctx.Err()
	}
	cases := map[string]struct {
		wait   time.Duration
		answer func(context.Context, summarize.Request) (summarize.Output, error)
		// took is how long the assembly at the first cut takes, and uses whether it has
		// the summary.
		took time.Duration
		uses bool
	}{
		"in time":                 {wait: time.Minute, answer: after(20 * time.Second), took: 20 * time.Second, uses: true},
		"too late":                {wait: 10 * time.Second, answer: after(20 * time.Second), took: 10 * time.Second},
		"never":                   {wait: 10 * time.Second, answer: hangs, took: 10 * time.Second},
		"the model is down":       {wait: time.Minute, answer: fails},
		"no wait, a slow model":   {answer: after(time.Nanosecond)},
		"no wait, one that hangs": {answer: hangs},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &model{answer: c.answer}
				w := start(t, m)
				w.serve(block) // nothing is made ahead of need
				w.open(1)
				for i := 1; i < long; i++ {
					w.turns(i, i+1)
					start := time.Now()
					got := w.wait(c.wait)
					took := time.Since(start)
					if got.Projection.After.CollapsedThrough == 0 {
						if took != 0 || m.spans() != 0 {
							t.Fatalf("turn %d: waited %s although nothing had to leave", i, took)
						}
						continue
					}
					if took != c.took {
						t.Errorf("the cut took %s, want %s", took, c.took)
					}
					if spans := m.spans(); (c.wait > 0) != (spans == 1) {
						t.Errorf("%d summaries were asked for", spans)
					}
					if c.uses != (got.Projection.After.Summary != "") || c.uses != strings.Contains(shown(got), "> The modules of events") {
						t.Errorf("the cut uses summary %q:\n%s", got.Projection.After.Summary, shown(got))
					}
					if !strings.Contains(shown(got), "Earlier tool calls") {
						t.Errorf("the digest names no calls:\n%s", shown(got))
					}
					replay, err := w.engine.Replay(t.Context(), "s", got.Projection.ID)
					if err != nil || !replay.Same {
						t.Errorf("replayed: %v, %s", err, replay.Difference)
					}
					return
				}
				t.Error("the session was never cut")
			})
		})
	}
}

// shown is the text of a context.
func shown(c answer) string {
	var out strings.Builder
	for _, m := range c.Messages {
		for _, b := range m.Blocks {
			if text, ok := b.(eventlog.Text); ok {
				out.WriteString(text.Text)
			}
		}
	}
	return out.String()
}

// A request that waits does not hold the session: it is assembled and grows meanwhile, and the answer is
// for the log at the end of the wait.
func TestWaitingHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, let := gated()
		w := start(t, m)
		w.open(long)
		waited := make(chan answer)
		go func() { waited <- w.wait(time.Hour) }()
		synctest.Wait() // for the model
		other := w.wait(0)
		if id := other.Projection.After.Summary; id != "" {
			t.Errorf("the impatient one quotes %q", id)
		}
		w.turns(long, long+1)
		close(let)
		if got := <-waited; got.AsOf != other.AsOf+2 {
			t.Fatalf("who waited got %+v", got)
		}
	})
}

// A summary for which several requests wait is made once.
func TestOneSummaryForAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, let := gated()
		w := start(t, m)
		w.open(long)
		hashes := make(chan string)
		for range 4 {
			go func() { hashes <- w.wait(time.Hour).PrefixHash }()
		}
		synctest.Wait()
		close(let)
		first := <-hashes
		for range 3 {
			if h := <-hashes; h != first {
				t.Errorf("who waited for the same summary got %s and %s", first, h)
			}
		}
		synctest.Wait()
		if spans := m.spans(); spans != 1 {
			t.Errorf("%d spans were summarised for one cut", spans)
		}
	})
}

// spans is how many spans the model was asked to summarise.
func (m *model) spans() (n int) {
	for _, r := range m.asked() {
		if r.Chunk == 0 {
			n++
		}
	}
	return n
}

// If the caller gives up the request, the wait ends.
func TestTheCallersEndEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := gated()
		w := start(t, m)
		w.open(long)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := w.ask(ctx, patient(time.Hour))
		if took := time.Since(start); took != time.Second {
			t.Errorf("ended after %s (%v)", took, err)
		}
	})
}

// A preview waits for a summary just as its request would.
func TestAPreviewWaits(t *testing.T) {
	w := start(t, &model{answer: writes})
	w.open(long)
	req := patient(time.Hour)
	req.Preview = true
	preview, err := w.ask(t.Context(), req)
	if err != nil || preview.Projection.After.Summary == "" {
		t.Fatalf("%v: the preview has no summary", err)
	}
	if id, err := records.Newest(t.Context(), w.store, "s"); id != "" || err != nil {
		t.Errorf("the preview was recorded as %q (%v)", id, err)
	}
	if got := w.wait(time.Hour); got.PrefixHash != preview.PrefixHash {
		t.Error("the request shows something else than its preview")
	}
}
