package reduce_test

import (
	"testing"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// cutsOf replays a long session and returns the sizes, before each cut that took the
// run further, of what everything after the last cut had come to.
func cutsOf(t *testing.T, policy reduce.Policy, target uint64) (sizes []uint64) {
	t.Helper()
	s := newSession()
	var before uint64
	for _, e := range longSession(1200) {
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
	early := cutsOf(t, policy, target)
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
			late := cutsOf(t, policy, target)
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
