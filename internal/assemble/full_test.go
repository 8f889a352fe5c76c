package assemble_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/render"
)

// genUndecidedLog is a log without callers' compactions, which TestCompactionsHoldForEveryReader covers.
func genUndecidedLog(t *rapid.T) []eventlog.Event {
	log := logtest.GenLog(1, 30).Draw(t, "log")
	for i := range log {
		if c, ok := log[i].Body.(*eventlog.Compaction); ok {
			c.Decision = nil
		}
	}
	return log
}

// TestFullShowsTheLogAsItIs assembles logs of every kind as they grow, by budgets of every
// size: each block of each message is shown as it is, once, or the context is refused.
func TestFullShowsTheLogAsItIs(t *testing.T) {
	shown, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		store := memlog.New()
		defer store.Close()
		engine := newEngine(t, store)
		log := genUndecidedLog(t)
		req := request()
		req.Policy.Projection.Name = projection.Full
		req.Policy.Reduction.ToolResults.Strict = rapid.Bool().Draw(t, "strict")
		req.Budget.Format = rapid.SampledFrom(render.Formats()).Draw(t, "format").Name
		for n := 0; n < len(log); {
			next := min(len(log), n+rapid.IntRange(1, 10).Draw(t, "events"))
			push(t, store, "s", log[n:next]...)
			n = next
			req.Budget.MaxTokens = rapid.SampledFrom([]uint64{200, 2_000, 10_000_000}).Draw(t, "max_tokens")
			out, err := engine.Assemble(t.Context(), req)
			var over *assemble.BudgetError
			if errors.As(err, &over) && over.Needed > over.Target && over.Whole {
				refused++
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			shown++
			if r := out.Projection; len(r.Redacted) > 0 || len(r.Pointers) > 0 || r.ReclaimedTokens != 0 {
				t.Fatalf("the record tells of redactions: %+v", r)
			}
			if req.Budget.Format == render.NameContextd {
				checkBlocks(t, log[:n], out)
			}
		}
	})
	if shown == 0 || refused == 0 {
		t.Errorf("%d shown and %d refused", shown, refused)
	}
}

// checkBlocks compares the blocks of a log with those of its context in contextd's own
// format, which shows each as it is.
func checkBlocks(t *rapid.T, log []eventlog.Event, out *assemble.Context) {
	t.Helper()
	type placed struct {
		Place eventlog.Place
		Block eventlog.Block
	}
	var want, got []placed
	for i, e := range log {
		if m, ok := e.Body.(*eventlog.Message); ok {
			for b, block := range m.Blocks {
				want = append(want, placed{eventlog.Place{Seq: eventlog.Seq(i + 1), Block: b}, block})
			}
		}
	}
	for _, m := range out.Messages {
		for b, place := range m.Places {
			if place.Seq > 0 { // what replaces a result that is not there is of no event
				got = append(got, placed{place, m.Blocks[b]})
			}
		}
	}
	slices.SortFunc(got, func(a, b placed) int { return a.Place.Compare(b.Place) })
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(eventlog.ToolResult{}, "ToolName")); diff != "" {
		t.Fatalf("blocks in the log and in the context (-want +got):\n%s", diff)
	}
}
