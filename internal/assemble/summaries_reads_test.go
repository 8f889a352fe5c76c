package assemble_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/summarize"
)

// countingStore counts the artifacts of a kind that are read.
type countingStore struct {
	eventlog.Store
	kind string
	read int
}

func (s *countingStore) Artifacts(ctx context.Context, id string, q eventlog.ArtifactQuery) iter.Seq2[eventlog.Artifact, error] {
	return func(yield func(eventlog.Artifact, error) bool) {
		for a, err := range s.Store.Artifacts(ctx, id, q) {
			if a.Kind == s.kind {
				s.read++
			}
			if !yield(a, err) {
				return
			}
		}
	}
}

func (s *countingStore) Artifact(ctx context.Context, id, kind string, seq eventlog.Seq, artifactID string) (eventlog.Artifact, error) {
	if kind == s.kind {
		s.read++
	}
	return s.Store.Artifact(ctx, id, kind, seq, artifactID)
}

// A context reads the summaries that it may quote, however many the session has; so does one after another summary was
// made, and a replay.
func TestAContextReadsFewSummaries(t *testing.T) {
	for _, summaries := range []int{20, 1_000} {
		t.Run(fmt.Sprint(summaries), func(t *testing.T) {
			store := &countingStore{Store: memlog.New(), kind: summarize.ArtifactKind}
			defer closeStore(t, store)
			fill(t, store, summaries+100)
			put := func(to int) {
				t.Helper()
				end := eventlog.Seq(to)
				s := summarize.Summary{ID: summarize.SummaryID(1, end, "test", ""), From: 1, To: end, Text: fmt.Sprint("What was done through ", to, "."), Summarizer: "test", Time: epoch(), Version: summarize.Version}
				if err := summarize.Put(t.Context(), store, "s", 0, s); err != nil {
					t.Fatal(err)
				}
			}
			for i := range summaries {
				put(i + 10)
			}
			engine := newEngine(t, store)
			req := windowOf(8_192)
			for step := range 3 {
				store.read = 0
				got := mustAssemble(t, engine, req)
				if len(got.Projection.Summaries) == 0 {
					t.Fatal("no summary is offered")
				}
				if store.read > 10 {
					t.Errorf("step %d: %d of %d summaries were read", step, store.read, summaries)
				}
				store.read = 0
				if r, err := engine.Replay(t.Context(), "s", got.Projection.ID); err != nil || !r.Same || store.read > 4 {
					t.Errorf("step %d: a replay read %d summaries: %q, %v", step, store.read, r.Difference, err)
				}
				put(summaries + 10 + step)
				engine.Summarized(t.Context(), "s", summarize.Summary{})
			}
		})
	}
}
