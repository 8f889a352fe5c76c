package compaction_test

import (
	"context"
	"errors"
	"testing"

	"github.com/contextd/contextd/internal/compaction"
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
)

var errFull = errors.New("the disk is full")

// full is a store that takes no events.
type full struct{ eventlog.Store }

func (full) Append(context.Context, string, eventlog.Batch) (eventlog.Commit, error) {
	return nil, errFull
}

// If the event of a compaction or an undo cannot be appended, the caller gets the error and nothing has
// changed.
func TestAMarkThatCannotBeAppended(t *testing.T) {
	for _, strategy := range []reduce.Strategy{reduce.Mask, reduce.Drop, reduce.Summarize, ""} {
		t.Run("by "+string(strategy), func(t *testing.T) {
			var o *compaction.Options
			w := start(t, &model{answer: writes}, func(options *compaction.Options) { o = options })
			broken := *o
			broken.Journal = lifecycle.NewJournal(full{w.store}, w.bus, noon)
			refuses := compaction.New(broken)
			defer refuses.Close()
			w.open(10)
			before := w.assemble()
			if out, err := refuses.Compact(t.Context(), request(strategy, 1500)); !errors.Is(err, errFull) || out.Done != nil || out.Event != 0 {
				t.Errorf("%+v, %v", out, err)
			}
			if after := w.assemble(); after.PrefixHash != before.PrefixHash || after.AsOf != before.AsOf {
				t.Error("a compaction that was not appended holds")
			}
			if undone, err := w.Undo(t.Context(), "s", 0); err != nil || len(undone.Seqs) > 0 {
				t.Errorf("taken back was %+v, %v", undone, err)
			}
			if out := w.compact(request(strategy, 1500)); out.Outcome != compaction.Compacted {
				t.Fatalf("once the store works again: %+v", out)
			}
			compacted := w.assemble()
			if undone, err := refuses.Undo(t.Context(), "s", 0); !errors.Is(err, errFull) || len(undone.Seqs) > 0 || undone.Event != 0 {
				t.Errorf("taken back was %+v, %v", undone, err)
			}
			if after := w.assemble(); after.PrefixHash != compacted.PrefixHash {
				t.Error("a take-back that was not appended holds")
			}
		})
	}
}

func TestFieldsThatWouldHaveNoEffectAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		field  string
		change func(*compaction.Request)
	}{
		"a summary to mask by":          {"summary", func(r *compaction.Request) { r.Strategy, r.Summary = reduce.Mask, "text" }},
		"a summary to drop by":          {"summary", func(r *compaction.Request) { r.Strategy, r.Summary = reduce.Drop, "text" }},
		"instructions to mask by":       {"instructions", func(r *compaction.Request) { r.Strategy, r.Instructions.Text = reduce.Mask, "text" }},
		"instructions to drop by":       {"instructions", func(r *compaction.Request) { r.Strategy, r.Instructions.Text = reduce.Drop, "text" }},
		"instructions beside a summary": {"instructions", func(r *compaction.Request) { r.Summary, r.Instructions.Text = "text", "text" }},
		"a summary of a harness's view": {"summary", func(r *compaction.Request) {
			r.Summary, r.Request.Policy.Projection.Name = "text", projection.HarnessView
		}},
		"to summarise a harness's view": {"strategy", func(r *compaction.Request) {
			r.Strategy, r.Request.Policy.Projection.Name = reduce.Summarize, projection.HarnessView
		}},
		"a take-back of what is no mark": {"compaction_seq", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, &model{answer: writes})
			w.open(10)
			var err error
			if c.change == nil {
				_, err = w.Undo(t.Context(), "s", 3)
			} else {
				r := request("", 1000)
				r.Measured = true
				c.change(&r)
				_, err = w.Compact(t.Context(), r)
			}
			var invalid *eventlog.InvalidError
			if !errors.As(err, &invalid) || invalid.Field != c.field {
				t.Errorf("%v, want an error that names %s", err, c.field)
			}
		})
	}
}
