package assemble_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/projection"
)

const plan = "Next: pkg/mod3/handler.go still leaks."

// TestAStoredPlanIsAsGoodAsOneThatIsSent assembles a session with a plan in an event that
// no model sees, and one whose plan each request brings.
func TestAStoredPlanIsAsGoodAsOneThatIsSent(t *testing.T) {
	live := func(standing, json string) eventlog.Event {
		return eventlog.Event{
			ID: standing + json, Labels: map[string]string{eventlog.LabelStanding: standing},
			Body: &eventlog.Custom{Type: "notes", JSON: json},
		}
	}
	noted := eventlog.Event{ID: "notes", Body: &eventlog.Custom{Type: "notes", JSON: `"nothing"`}}
	for _, standing := range []string{eventlog.StandingPlan, eventlog.StandingScratchpad} {
		t.Run(standing, func(t *testing.T) {
			stored := work(t, live(standing, `"`+plan+`"`), nil)
			sent := work(t, noted, func(o *projection.Options) {
				if o.ActivePlan = plan; standing == eventlog.StandingScratchpad {
					o.ActivePlan, o.Scratchpad = "", plan
				}
			})
			without := work(t, noted, nil)
			if diff := cmp.Diff(sent, stored); diff != "" {
				t.Errorf("contexts with a plan that is sent and one that is stored (-sent +stored):\n%s", diff)
			}
			inFull := func(contexts []string) bool {
				return strings.Count(contexts[len(contexts)-1], "func handler3(") == 16 // lines
			}
			if !inFull(stored) || inFull(without) {
				t.Error("the plan does not keep the result that it names, or it stays without")
			}
		})
	}
}

// work returns the contexts of a session as it grows, with an event before its fifth turn.
func work(t *testing.T, event eventlog.Event, options func(*projection.Options)) (contexts []string) {
	t.Helper()
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	req := request()
	req.Policy.Projection.Name = projection.ReachabilityGC
	push(t, store, "s", opening()...)
	for i := range 40 {
		if i == 4 {
			push(t, store, "s", event)
			if options != nil {
				options(&req.Policy.Projection)
			}
		}
		push(t, store, "s", turn(i)...)
		out := mustAssemble(t, engine, req)
		contexts = append(contexts, lines(out.Messages))
		replay, err := engine.Replay(t.Context(), "s", out.Projection.ID)
		if err != nil || !replay.Same {
			t.Fatalf("a replay differs: %s, %v", replay.Difference, err)
		}
	}
	return contexts
}

// TestAPlanIsAWriteBarrier: a plan in the log counts as a write, so results before it may be redacted.
func TestAPlanIsAWriteBarrier(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	none := uint32(0)
	req := request()
	req.Budget = budget.Spec{MaxTokens: 1_000_000, Tokenizer: budget.TokenizerO200K}
	req.Policy.Projection = projection.Options{Name: projection.ReachabilityGC, RequireWriteBarrier: true, ClearAtLeastTokens: &none, RootWindow: &none, KeepLast: 1}
	req.Policy.Reduction.Cache.PaybackTurns, req.Policy.Reduction.ToolResults.Default.Never = 0, true
	redacted := func() (n int) {
		for _, m := range mustAssemble(t, engine, req).Messages {
			n += strings.Count(string(m.JSON), "result redacted")
		}
		return n
	}
	push(t, store, "s", opening()...)
	for i := range 6 {
		push(t, store, "s", turn(i)...)
	}
	if n := redacted(); n != 0 {
		t.Fatalf("%d results are redacted before anything was written", n)
	}
	push(t, store, "s", eventlog.Event{
		ID: "scratchpad", Labels: map[string]string{eventlog.LabelInjected: "true", eventlog.LabelStanding: eventlog.StandingScratchpad},
		Body: &eventlog.Reminder{Body: "I have read the modules."},
	})
	push(t, store, "s", turn(6)...)
	if n := redacted(); n < 4 {
		t.Errorf("%d results are redacted after the scratchpad was written", n)
	}
}
