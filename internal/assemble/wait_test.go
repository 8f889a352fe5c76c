package assemble_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/summarize"
)

// counted counts how often a summary is waited for.
type counted struct {
	assemble.Summarizer
	waits int
}

func (c *counted) Do(ctx context.Context, p summarize.Proposal) (summarize.Summary, error) {
	c.waits++
	return c.Summarizer.Do(ctx, p)
}

// inBubble runs a test on a clock of its own, which moves when everybody waits. What
// is kept for all tests is made before.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if _, err := gauges(tight.Tokenizer); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, test)
}

// patient asks for a context that may be waited for.
func patient(wait time.Duration) assemble.Request {
	req := summarized(byModel)
	req.Policy.Summaries.Wait = wait
	return req
}

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
			inBubble(t, func(t *testing.T) {
				store := memlog.New()
				defer closeStore(t, store)
				w := newWorld(t, store, &scripted{answer: c.answer})
				defer w.close()
				count := &counted{Summarizer: w.scheduler}
				w.engine.Attach(count, w)
				push(t, store, "s", opening()...)
				var before *assemble.Context
				for i := range turns {
					push(t, store, "s", turn(i)...)
					start := time.Now()
					got := mustAssemble(t, w.engine, patient(c.wait))
					took := time.Since(start)
					if !cut(t, before, got) {
						if took != 0 || count.waits != 0 {
							t.Fatalf("turn %d: waited %s although nothing had to leave", i, took)
						}
						before = got
						continue
					}
					if took != c.took {
						t.Errorf("the cut took %s, want %s", took, c.took)
					}
					if waits := c.wait > 0; waits != (count.waits == 1) {
						t.Errorf("%d waits for a summary", count.waits)
					}
					if _, id := inForce(got); c.uses != (id != "") || c.uses != strings.Contains(digestOf(got), "\n> The handlers of events") {
						t.Errorf("the cut uses summary %q:\n%s", id, digestOf(got))
					}
					if !strings.Contains(digestOf(got), "Earlier tool calls") {
						t.Errorf("the digest names no calls:\n%s", digestOf(got))
					}
					mustReplay(t, w.engine, "s")
					return
				}
				t.Error("the session was never cut")
			})
		})
	}
}

// Whoever waits does not hold the session: it is assembled and grows meanwhile, and
// the one that waited answers for the log as it is by then.
func TestWaitingHoldsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := memlog.New()
		defer closeStore(t, store)
		release := make(chan struct{})
		w := newWorld(t, store, &scripted{answer: func(ctx context.Context, r summarize.Request) (summarize.Output, error) {
			<-release
			return writes(ctx, r)
		}})
		defer w.close()
		push(t, store, "s", opening()...)
		for i := range turns {
			push(t, store, "s", turn(i)...)
		}
		waited := make(chan *assemble.Context)
		go func() {
			got, err := w.engine.Assemble(context.Background(), patient(time.Hour))
			if err != nil {
				t.Error(err)
			}
			waited <- got
		}()
		synctest.Wait() // for the model
		other := mustAssemble(t, w.engine, patient(0))
		if _, id := inForce(other); id != "" {
			t.Errorf("the impatient one quotes %q", id)
		}
		push(t, store, "s", turn(turns)...)
		close(release)
		got := <-waited
		if got == nil || got.AsOf != other.AsOf+eventlog.Seq(len(turn(turns))) {
			t.Fatalf("who waited got %+v", got)
		}
		cut(t, other, got)
		mustReplay(t, w.engine, "s")
	})
}

// A summary that several wait for is made once.
func TestOneSummaryForAllWhoWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := memlog.New()
		defer closeStore(t, store)
		release := make(chan struct{})
		model := &scripted{answer: func(ctx context.Context, r summarize.Request) (summarize.Output, error) {
			<-release
			return writes(ctx, r)
		}}
		w := newWorld(t, store, model)
		defer w.close()
		push(t, store, "s", opening()...)
		for i := range 30 {
			push(t, store, "s", turn(i)...)
		}
		hashes := make(chan string)
		for range 4 {
			go func() {
				got, err := w.engine.Assemble(context.Background(), patient(time.Hour))
				if err != nil {
					t.Error(err)
					hashes <- err.Error()
					return
				}
				hashes <- got.PrefixHash
			}()
		}
		synctest.Wait()
		close(release)
		first := <-hashes
		for range 3 {
			if h := <-hashes; h != first {
				t.Errorf("who waited for the same summary got %s and %s", first, h)
			}
		}
		var spans []summarize.Request
		for _, r := range model.asked() {
			if r.Chunk == 0 {
				spans = append(spans, r)
			}
		}
		if len(spans) != 1 {
			t.Errorf("%d spans were summarised for one cut", len(spans))
		}
	})
}

// Who gives up the request ends the wait with it.
func TestTheCallersEndEndsTheWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := memlog.New()
		defer closeStore(t, store)
		w := newWorld(t, store, nil)
		defer w.close()
		push(t, store, "s", opening()...)
		for i := range turns {
			push(t, store, "s", turn(i)...)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := w.engine.Assemble(ctx, patient(time.Hour))
		if took := time.Since(start); took != time.Second {
			t.Errorf("ended after %s (%v)", took, err)
		}
	})
}

// A preview records nothing and proposes nothing, and shows what the request itself
// would: where that waits for a summary, it does.
func TestAPreviewShowsWhatTheRequestWould(t *testing.T) {
	for name, wait := range map[string]time.Duration{"without waiting": 0, "with a wait": time.Hour} {
		t.Run(name, func(t *testing.T) {
			store := memlog.New()
			defer closeStore(t, store)
			w := started(t, store, &scripted{answer: writes})
			push(t, store, "s", opening()...)
			for i := range turns {
				push(t, store, "s", turn(i)...)
			}
			req := patient(wait)
			req.Preview = true
			preview := mustAssemble(t, w.engine, req)
			if n := mustReplay(t, w.engine, "s"); n != 0 || len(w.proposed) != 0 || len(w.told()) != 0 {
				t.Errorf("a preview recorded %d projections and proposed %d spans", n, len(w.proposed))
			}
			if wait == 0 && len(w.summaries("s")) != 0 {
				t.Error("a preview that must not wait had a summary made")
			}
			if got := mustAssemble(t, w.engine, patient(wait)); got.PrefixHash != preview.PrefixHash {
				t.Error("the request shows something else than its preview")
			}
		})
	}
}
