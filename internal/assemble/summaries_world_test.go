package assemble_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/extractive"
)

// summarizers are what a world's policies may name.
const (
	byRules = "extractive"
	byModel = "model"
)

// scripted is a model: it answers by a function and keeps what it was asked.
type scripted struct {
	answer func(context.Context, summarize.Request) (summarize.Output, error)

	mu       sync.Mutex
	requests []summarize.Request
}

func (s *scripted) Summarize(ctx context.Context, r summarize.Request) (summarize.Output, error) {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	return s.answer(ctx, r)
}

func (s *scripted) asked() []summarize.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]summarize.Request(nil), s.requests...)
}

// writes is the answer of a model that says another thing about each span.
func writes(_ context.Context, r summarize.Request) (summarize.Output, error) {
	return summarize.Output{Text: fmt.Sprintf("The handlers of events %d to %d were read; none of them leaks.", r.From, r.To), Model: "model-1"}, nil
}

// hangs is the answer of a model that gives none.
func hangs(ctx context.Context, _ summarize.Request) (summarize.Output, error) {
	<-ctx.Done()
	return summarize.Output{}, ctx.Err()
}

// world is an engine with a real scheduler. It collects proposals, and has them made only when a test calls
// between.
type world struct {
	tb        rapid.TB
	store     eventlog.Store
	engine    *assemble.Engine
	scheduler *summarize.Scheduler
	proposed  []summarize.Proposal
}

// newWorld starts one over a store, as a daemon does. A nil model never answers.
func newWorld(tb rapid.TB, store eventlog.Store, model summarize.Backend) *world {
	tb.Helper()
	if model == nil {
		model = &scripted{answer: hangs}
	}
	registry, err := summarize.NewRegistry(map[string]summarize.Summarizer{
		byRules: {Backend: extractive.Backend{}},
		byModel: {Backend: model, Timeout: time.Hour},
	})
	if err != nil {
		tb.Fatal(err)
	}
	w := &world{tb: tb, store: store, engine: newEngine(tb, store)}
	w.scheduler = summarize.NewScheduler(summarize.Options{Store: store, Sessions: w.engine, Registry: registry, Now: epoch})
	return w
}

// started is newWorld for tests that close the world by themselves only at the end.
func started(t *testing.T, store eventlog.Store, model summarize.Backend) *world {
	t.Helper()
	w := newWorld(t, store, model)
	t.Cleanup(w.close)
	return w
}

func (w *world) close() { w.scheduler.Close() }

// assemble assembles a context, and notes what it proposes.
func (w *world) assemble(req assemble.Request) *assemble.Context {
	w.tb.Helper()
	out, err := w.try(req)
	if err != nil {
		w.tb.Fatal(err)
	}
	return out
}

// try is assemble for contexts that may be refused.
func (w *world) try(req assemble.Request) (*assemble.Context, error) {
	out, err := w.engine.Assemble(context.Background(), req)
	if err == nil && out.Proposed != nil {
		w.proposed = append(w.proposed, *out.Proposed)
	}
	return out, err
}

// between has the collected proposals made, as happens between turns. It returns the number of summaries.
func (w *world) between() int {
	w.tb.Helper()
	all := w.proposed
	w.proposed = nil
	for _, p := range all {
		if _, err := w.scheduler.Do(context.Background(), p); err != nil {
			w.tb.Fatalf("events %d to %d: %v", p.From, p.To, err)
		}
	}
	return len(all)
}

func (w *world) summaries(id string) []summarize.Summary {
	w.tb.Helper()
	all, err := logtest.Collect(summarize.NewestFirst(context.Background(), w.store, id, 0, ""))
	if err != nil {
		w.tb.Fatal(err)
	}
	slices.Reverse(all)
	return all
}

// summarized asks for a context whose summaries are made by a summarizer.
func summarized(by string) assemble.Request {
	req := request()
	req.Policy.Summaries.Summarizer = by
	return req
}

// digestOf is the text that replaces what was dropped, or empty.
func digestOf(c *assemble.Context) string {
	for _, m := range c.Messages {
		if len(m.Seqs) > 0 || len(m.Blocks) != 1 {
			continue
		}
		if b, ok := m.Blocks[0].(eventlog.Text); ok && strings.HasPrefix(b.Text, "[contextd: earlier messages left") {
			return b.Text
		}
	}
	return ""
}

// quoted is a text as a digest quotes it.
func quoted(text string) string { return "> " + strings.ReplaceAll(text, "\n", "\n> ") + "\n" }

// mustReplay computes every recorded projection of a session again.
func mustReplay(tb rapid.TB, w *world, id string) int {
	tb.Helper()
	n := 0
	for r, err := range records.Projections(context.Background(), w.store, id, eventlog.ArtifactQuery{}) {
		if err != nil {
			tb.Fatal(err)
		}
		n++
		replay, err := w.engine.Replay(context.Background(), id, r.ID)
		if err != nil {
			tb.Fatalf("replay of %s: %v", r.ID, err)
		}
		if !replay.Same {
			tb.Fatalf("replay of %s: %s", r.ID, replay.Difference)
		}
	}
	return n
}

// inForce are the decisions that a context was made under.
func inForce(c *assemble.Context) (through eventlog.Seq, summary string) {
	return c.Projection.After.CollapsedThrough, c.Projection.After.Summary
}
