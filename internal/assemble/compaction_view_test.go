package assemble_test

import (
	"context"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
)

// viewed asks for the test session under a policy, with room for everything.
func viewed(policy string) assemble.Request {
	req := request()
	req.Budget = budget.Spec{MaxTokens: 1_000_000, Tokenizer: budget.TokenizerO200K}
	req.Policy.Projection.Name = policy
	return req
}

// A harness may drop the newest message of a human. A compaction measured under harness_view does not drop
// that message for readers under other policies.
func TestACompactionOfAHarnessViewSparesWhatItDoesNotShow(t *testing.T) {
	onBothStores(t, func(t *testing.T, store eventlog.Store, _ func() eventlog.Store) {
		w := started(t, store, nil)
		push(t, store, "s", opening()...)
		for i := range 3 {
			push(t, store, "s", turn(i+1)...)
		}
		asked := text("asked", eventlog.RoleUser, "Leave the tests alone.")
		more := text("more", eventlog.RoleUser, "And the docs.")
		for _, e := range []eventlog.Event{asked, more} {
			e.Body.(*eventlog.Message).GroupID = "asked"
			push(t, store, "s", e)
		}
		push(t, store, "s", eventlog.Event{ID: "boundary", Body: &eventlog.Compaction{Summary: "Three handlers were read."}})
		for i := range 6 {
			push(t, store, "s", turn(i+11)...)
		}
		c := assemble.Compaction{SessionID: "s", Request: viewed(projection.HarnessView), Measured: true, Strategy: reduce.Drop, KeepLastTurns: 1}
		if w.compacted(c) == nil {
			t.Fatal("there is nothing to do")
		}
		for policy, want := range map[string]map[string]bool{
			projection.Raw:         {"Leave the tests alone.": true, "And the docs.": true, "Three handlers were read.": false, "pkg/mod16": true, "func handler11(": false},
			projection.HarnessView: {"Leave the tests alone.": false, "And the docs.": false, "Three handlers were read.": true, "pkg/mod16": true, "func handler11(": false},
		} {
			got := w.assemble(viewed(policy))
			for s, shown := range want {
				if strings.Contains(lines(got.Messages), s) != shown {
					t.Errorf("under %s, that %q is shown should be %v:\n%s", policy, s, shown, lines(got.Messages))
				}
			}
		}
		mustReplay(t, w, "s")
	})
}

// A harness's boundary and a caller's compaction hold side by side, in either order. An undo brings back
// what the harness shows, and no more.
func TestHarnessViewUnderDecisions(t *testing.T) {
	for name, first := range map[string]bool{"the boundary first": true, "the decision first": false} {
		t.Run(name, func(t *testing.T) {
			onBothStores(t, func(t *testing.T, store eventlog.Store, reopen func() eventlog.Store) {
				w := newWorld(t, store, nil)
				defer func() { w.close() }()
				push(t, store, "s", opening()...)
				turns := func(from, to int) {
					for i := from; i < to; i++ {
						push(t, store, "s", turn(i)...)
					}
				}
				boundary := func() {
					push(t, store, "s", eventlog.Event{ID: "boundary", Body: &eventlog.Compaction{Summary: "The harness went on.", KeptEventIDs: []string{"call_4-call", "call_4-result"}}})
				}
				compact := func() {
					c := assemble.Compaction{SessionID: "s", Request: viewed(projection.HarnessView), Measured: true, Strategy: reduce.Drop, KeepLastTurns: 2}
					if w.compacted(c) == nil {
						t.Fatal("there is nothing to do")
					}
				}
				turns(1, 6)
				if first {
					boundary()
					turns(11, 16)
					compact()
				} else {
					compact()
					turns(11, 16)
					boundary()
				}
				turns(21, 23)
				before := w.assemble(viewed(projection.HarnessView))
				check := func(when string, c *assemble.Context, calls ...string) {
					t.Helper()
					var shown []string
					for _, m := range c.Messages {
						for _, b := range m.Blocks {
							if call, ok := b.(eventlog.ToolCall); ok {
								shown = append(shown, call.CallID)
							}
						}
					}
					if strings.Join(shown, " ") != strings.Join(calls, " ") {
						t.Errorf("%s %v are shown, want %v", when, shown, calls)
					}
					if !strings.Contains(lines(c.Messages), "The harness went on.") {
						t.Errorf("%s the boundary is not shown", when)
					}
				}
				undo := func() {
					if taken, err := w.engine.Undo(context.Background(), "s", 0, func(ctx context.Context, c *eventlog.Compaction) error {
						_, err := mark(ctx, t, store, "s", c)
						return err
					}); err != nil || len(taken) != 1 {
						t.Fatalf("taken back were %v, %v", taken, err)
					}
				}
				if first {
					check("compacted,", before, "call_14", "call_15", "call_21", "call_22")
					undo()
					check("taken back,", w.assemble(viewed(projection.HarnessView)), "call_4", "call_11", "call_12", "call_13", "call_14", "call_15", "call_21", "call_22")
				} else {
					check("compacted,", before, "call_4", "call_21", "call_22")
					undo()
					check("taken back,", w.assemble(viewed(projection.HarnessView)), "call_4", "call_21", "call_22")
				}
				w.close()
				store = reopen()
				w = newWorld(t, store, nil)
				again := viewed(projection.HarnessView)
				again.AsOf, again.Preview = &before.AsOf, true
				if got := w.assemble(again); got.PrefixHash != before.PrefixHash {
					t.Errorf("as of the time before it shows\n%s\nand showed\n%s", lines(got.Messages), lines(before.Messages))
				}
				mustReplay(t, w, "s")
			})
		})
	}
}

// A session may fit the budget in one format and not in another, whose messages take more tokens. What is
// reduced for the larger format is then reduced in both, even as of the same event, because fingerprints do
// not include the format. Contexts shown before are in their records.
func TestFormatsShareDecisions(t *testing.T) {
	onBothStores(t, func(t *testing.T, store eventlog.Store, _ func() eventlog.Store) {
		w := started(t, store, nil)
		push(t, store, "s", opening()...)
		req := request()
		req.Budget.MaxTokens = 3_000
		reduced := func(format string, preview bool) int {
			req.Budget.Format, req.Preview = format, preview
			p := w.assemble(req).Projection
			return len(p.Dropped.Seqs()) + len(p.Redacted.Seqs())
		}
		for i := 0; i == 0 || reduced("anthropic", true) == 0; i++ {
			push(t, store, "s", turn(i+1)...)
			if n := reduced("", false); n > 0 {
				t.Fatalf("%d events were reduced, and none in the format that takes more", n)
			}
		}
		other, after := reduced("anthropic", false), reduced("", false)
		if other == 0 || after != other {
			t.Errorf("%d events were reduced in the other format, then %d", other, after)
		}
		mustReplay(t, w, "s")
	})
}
