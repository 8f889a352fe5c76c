package reduce_test

import (
	"fmt"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// cutsOf replays a long session and returns the sizes, before each cut that took the
// run further, of what everything after the last cut had come to.
func cutsOf(t *testing.T, policy reduce.Policy, target uint64, log []eventlog.Event) (sizes []uint64) {
	t.Helper()
	s := newSession()
	var before uint64
	for _, e := range log {
		if err := s.append(e); err != nil {
			t.Fatal(err)
		}
		r, err := reduce.NewPipeline(policy, s.conv).Run(budget.Budget{Target: target}, s.state, reduce.Ask{})
		if err != nil {
			t.Fatal(err)
		}
		if r.View.Tokens() > target {
			t.Fatalf("%d tokens of %d", r.View.Tokens(), target)
		}
		if r.State.CollapsedThrough > s.state.CollapsedThrough {
			sizes = append(sizes, before)
		}
		s.state, before = r.State, r.View.Tokens()
	}
	return sizes
}

func TestACutThatPaysDoesNotWaitForTheBudget(t *testing.T) {
	const target = 20_000
	policy := reducetest.Policy()
	policy.Cache.TTL = 0
	policy.Collapse.CutFrom, policy.Collapse.CutPaybackTurns = 0.5, 40
	early := cutsOf(t, policy, target, longSession(1200))
	if len(early) < 2 {
		t.Fatalf("%d cuts", len(early))
	}
	for _, size := range early[1:] {
		if size > target*3/4 {
			t.Errorf("a cut waited until the view had %d tokens of %d", size, target)
		}
	}
	for name, change := range map[string]func(*reduce.Collapse){
		"no fraction":  func(c *reduce.Collapse) { c.CutFrom = 0 },
		"no turns":     func(c *reduce.Collapse) { c.CutPaybackTurns = 0 },
		"never pays":   func(c *reduce.Collapse) { c.CutPaybackTurns = 1 },
		"at the limit": func(c *reduce.Collapse) { c.CutFrom = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			policy := policy
			change(&policy.Collapse)
			late := cutsOf(t, policy, target, longSession(1200))
			if len(late) == 0 || len(late) >= len(early) {
				t.Fatalf("%d cuts, %d where they may be early", len(late), len(early))
			}
			for _, size := range late {
				if size < target*3/4 {
					t.Errorf("a cut came when the view had %d tokens of %d", size, target)
				}
			}
		})
	}
}

// TestACutWaitsForAnAgentThatReachesBack has an agent name the file that it read so many turns
// before.
func TestACutWaitsForAnAgentThatReachesBack(t *testing.T) {
	const target = 20_000
	session := func(back int) []eventlog.Event {
		log := []eventlog.Event{message(eventlog.RoleSystem, eventlog.Text{Text: "You are a coding agent."})}
		for turn := range 400 {
			id, read := fmt.Sprintf("call_%d", turn), fmt.Sprintf("pkg/mod%d/handler.go", turn)
			log = append(log,
				message(eventlog.RoleAssistant, eventlog.ToolCall{CallID: id, Name: "read_file", Arguments: fmt.Sprintf(`{"path":%q,"beside":"pkg/mod%d/handler.go"}`, read, turn-back)}),
				message(eventlog.RoleTool, eventlog.ToolResult{CallID: id, Content: []eventlog.Block{eventlog.Text{Text: reducetest.Lines(40, read)}}}))
		}
		return log
	}
	policy := reducetest.Policy()
	policy.Cache.TTL = 0
	policy.Collapse.CutFrom, policy.Collapse.CutTo, policy.Collapse.CutPaybackTurns, policy.Collapse.CutReach = 0.5, 0.2, 40, 0.3
	near, far := session(1), session(12)
	early, late := cutsOf(t, policy, target, near), cutsOf(t, policy, target, far)
	if len(late) == 0 || len(late) >= len(early) {
		t.Fatalf("%d cuts where calls name what is new, %d where they reach back", len(early), len(late))
	}
	policy.Collapse.CutReach = 0
	if all := cutsOf(t, policy, target, far); len(all) != len(early) {
		t.Errorf("%d cuts where any reach will do, %d of an agent that names what is new", len(all), len(early))
	}
}

// TestASummaryIsProposedForTheCutThatComes: where cuts that pay begin beyond the target, the budget
// alone forces one, and the next summary is for what that drops.
func TestASummaryIsProposedForTheCutThatComes(t *testing.T) {
	b := budget.Budget{Target: 20_000}
	policy := reducetest.Policy()
	policy.Collapse.StartAt = 0.5
	policy.Collapse.CutFrom, policy.Collapse.CutTo, policy.Collapse.CutPaybackTurns = 0.5, 0.2, 40
	s := newSession()
	proposed := func(policy reduce.Policy) (through eventlog.Seq) {
		pipeline := reduce.NewPipeline(policy, s.conv)
		now, err := pipeline.Current(b, s.state, reduce.Ask{})
		if err != nil {
			t.Fatal(err)
		}
		span, _ := pipeline.Propose(b, now, reduce.Ask{})
		return span.To
	}
	for _, e := range longSession(1200) {
		if err := s.append(e); err != nil {
			t.Fatal(err)
		}
		if s.conv.Tokens() > b.Target*6/10 {
			break
		}
	}
	early := proposed(policy)
	policy.Collapse.CutFromTokens = b.Target
	late := proposed(policy)
	policy.Collapse.CutFrom = 0
	if never := proposed(policy); late != never || late == early {
		t.Errorf("proposed through %d where a cut pays now, %d where none does at this target, %d where none ever does", early, late, never)
	}
}

// TestBudgetsThatTakeTurnsReachBack: of two budgets that take turns, none has what was said since the last cut read
// again.
func TestBudgetsThatTakeTurnsReachBack(t *testing.T) {
	policy := reducetest.Policy()
	policy.Cache.TTL = 0
	policy.Collapse.CutFrom, policy.Collapse.CutPaybackTurns, policy.Collapse.CutReach = 0.5, 10_000, 0.0001
	s := newSession()
	for turn := 0; s.conv.Tokens() < 16_000; turn++ {
		id := fmt.Sprintf("call_%d", turn)
		if err := s.append(
			message(eventlog.RoleAssistant, eventlog.ToolCall{CallID: id, Name: "read_file", Arguments: fmt.Sprintf(`{"path":"pkg/mod%d.go","beside":"pkg/mod%d.go"}`, turn, turn-100)}),
			message(eventlog.RoleTool, eventlog.ToolResult{CallID: id, Content: []eventlog.Block{eventlog.Text{Text: reducetest.Lines(9, id)}}})); err != nil {
			t.Fatal(err)
		}
	}
	allocations := func(targets ...uint64) float64 {
		return testing.AllocsPerRun(10, func() {
			for _, target := range targets {
				if r, err := reduce.NewPipeline(policy, s.conv).Run(budget.Budget{Target: target}, s.state, reduce.Ask{}); err != nil || r.State.CollapsedThrough > 0 {
					t.Fatal(r.State.CollapsedThrough, err)
				}
			}
		})
	}
	one, two := allocations(20_000), allocations(20_000, 21_000)
	if two > 3*one {
		t.Errorf("%v allocations under two budgets, %v under one of them", two, one)
	}
}
