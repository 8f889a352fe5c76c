package reduce_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// compact has a caller compact the session now, and returns what was decided; nil where
// nothing could be.
func (s *session) compact(t fataler, p reduce.Policy, b budget.Budget, ask reduce.Ask, text string) *eventlog.Compaction {
	pipeline := func() *reduce.Pipeline { return reduce.NewPipeline(p, s.conv, s.summaries...) }
	before, err := pipeline().Current(b, s.state, ask)
	if err != nil {
		return nil
	}
	var summary reduce.Summary
	if ask.Strategy == reduce.Summarize {
		span, ready, nothing := pipeline().SpanFor(b, s.state, ask, text != "")
		switch {
		case nothing != "":
			s.checkNone(t, p, ask, nothing)
			return nil
		case ready.ID != "":
			summary = ready
		default:
			summary = reduce.Summary{ID: fmt.Sprintf("c%d-%d", span.To, s.conv.Head()), Through: span.To, By: "the caller", Text: text + "."}
		}
	}
	c, nothing, err := pipeline().Decide(b, s.state, ask, summary)
	if err != nil {
		t.Fatalf("no decision: %v", err)
	}
	if (c == nil) != (nothing != "") {
		t.Fatalf("%+v was decided, and nothing to do is %q", c, nothing)
	}
	if c == nil {
		if ask.Strategy == reduce.Summarize {
			t.Fatalf("a summary that was asked for is refused: %s", nothing)
		}
		return nil
	}
	assumed := pipeline()
	assumed.Assume(c)
	after, err := assumed.Current(b, s.state, ask)
	if err != nil {
		t.Fatalf("after the compaction: %v", err)
	}
	settles := s.state.CollapsedThrough > 0 && after.View.Tokens() == before.View.Tokens()
	if ask.Strategy != reduce.Summarize && after.View.Tokens() >= before.View.Tokens() && !settles {
		t.Fatalf("%s made %d tokens of %d: %+v\nfrom %+v\n%s\nto\n%s", ask.Strategy, after.View.Tokens(), before.View.Tokens(), c.Decision, s.state, linesOf(reducetest.Show(before.View)), linesOf(reducetest.Show(after.View)))
	}
	s.checkSpared(t, p, ask, before.View, after.View)
	if err := s.append(eventlog.Event{ID: fmt.Sprintf("compaction-%d", s.conv.Head()), Body: c}); err != nil {
		t.Fatalf("the log refuses %+v: %v", c.Decision, err)
	}
	if ask.Strategy == reduce.Summarize && ask.Goal > 0 && after.View.Tokens()+ask.Reserved > ask.Goal {
		again := ask
		again.Strategy = reduce.Drop
		if more, _, err := pipeline().Decide(b, s.state, again, reduce.Summary{}); err != nil || more != nil && more.Decision.Through > c.Decision.Through {
			t.Fatalf("it was %d tokens over its goal, and a second call drops through %+v, not %d (%v)", after.View.Tokens()+ask.Reserved-ask.Goal, more, c.Decision.Through, err)
		}
	}
	now, err := pipeline().Current(b, s.state, ask)
	if err != nil || !sameView(now.View, after.View) {
		t.Fatalf("the view is not as it was decided (%v)", err)
	}
	return c
}

// checkSpared checks that a compaction left the newest turns as they were, with the calls of late results
// that came in them.
func (s *session) checkSpared(t fataler, p reduce.Policy, ask reduce.Ask, before, after reduce.View) {
	keep := max(p.Collapse.KeepLastTurns, ask.KeepLastTurns, 1)
	if ask.KeepLastTurns > 0 {
		keep = ask.KeepLastTurns
	}
	at := map[*reduce.Group]int{}
	for i := range after.Len() {
		at[after.Group(i)] = i
	}
	newest := before.Group(before.Len() - 1).Turn
	first := s.conv.Head() + 1 // of what is late in the turns to keep
	for i := range before.Len() {
		g := before.Group(i)
		if !g.Anchor && first > s.conv.Head() && newest-g.Turn < keep {
			first = max(g.First, s.state.LateAfter+1) // what was dropped before does not come back
		}
	}
	if d := s.conv.Decided(); d != nil {
		first = max(first, d.LateAfter+1)
	}
	for i := range before.Len() {
		g := before.Group(i)
		j, here := at[g]
		late := slices.ContainsFunc(g.Calls, func(c reduce.Call) bool { return c.Turn > g.Turn && c.Seq >= first })
		if !here && (g.Anchor || g.Pinned || newest-g.Turn < keep || late) {
			t.Fatalf("the group at %d left, of turn %d of %d, with %d to keep", g.First, g.Turn, newest, keep)
		}
		if here && newest-g.Turn < keep && after.GroupTokens(j) != before.GroupTokens(i) {
			t.Fatalf("the group at %d was changed, of turn %d of %d, with %d to keep", g.First, g.Turn, newest, keep)
		}
	}
}

// checkNone checks that nothing can leave where that is said.
func (s *session) checkNone(t fataler, p reduce.Policy, ask reduce.Ask, nothing string) {
	keep := max(p.Collapse.KeepLastTurns, 1)
	if ask.KeepLastTurns > 0 {
		keep = ask.KeepLastTurns
	}
	groups := s.conv.Groups()
	if len(groups) == 0 || s.state.CollapsedThrough > 0 || s.conv.Decided() != nil {
		return
	}
	for _, g := range groups {
		if !g.Anchor && !g.Pinned && groups[len(groups)-1].Turn-g.Turn >= keep && !slices.ContainsFunc(g.Calls, func(c reduce.Call) bool { return c.Turn > g.Turn }) {
			for _, g := range groups {
				t.Logf("group %d..%d of turn %d, kind %d, anchor %v, pinned %v", g.First, g.Last, g.Turn, g.Kind, g.Anchor, g.Pinned)
			}
			t.Fatalf("the group at %d may leave, and %q is said", g.First, nothing)
		}
	}
}

func genCompaction(b budget.Budget) *rapid.Generator[reduce.Ask] {
	return rapid.Custom(func(t *rapid.T) reduce.Ask {
		return reduce.Ask{
			Strategy:      rapid.SampledFrom([]reduce.Strategy{reduce.Mask, reduce.Drop, reduce.Summarize}).Draw(t, "strategy"),
			Goal:          rapid.SampledFrom([]uint64{0, 1, b.Target / 4, b.Target}).Draw(t, "goal"),
			KeepLastTurns: rapid.SampledFrom([]uint32{0, 0, 1, 3}).Draw(t, "keep"),
			Reserved:      rapid.SampledFrom([]uint64{0, 0, 40, b.Target * 3 / 4}).Draw(t, "reserved"),
		}
	})
}

// A session is compacted by callers and taken back, and others look at it by policies,
// budgets and states of their own: what was dropped by a caller's decision is shown to nobody
// until that is taken back.
func TestCompactionsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSession()
		var at time.Duration
		type reader struct {
			policy reduce.Policy
			budget budget.Budget
			session
		}
		readers := make([]*reader, rapid.IntRange(1, 3).Draw(t, "readers"))
		for i := range readers {
			readers[i] = &reader{policy: genPolicy().Draw(t, "policy"), budget: genBudget().Draw(t, "budget"), session: *newSession()}
			readers[i].log, readers[i].conv = s.log, s.conv
		}
		for range rapid.IntRange(5, 50).Draw(t, "steps") {
			r := rapid.SampledFrom(readers).Draw(t, "reader")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				r.compact(t, r.policy, r.budget, genCompaction(r.budget).Draw(t, "ask"), rapid.SampledFrom(append(hostile, "")).Draw(t, "text"))
			case 1:
				if standing := s.conv.InForce(); len(standing) > 0 {
					from := rapid.SampledFrom(standing).Draw(t, "from")
					if err := s.append(eventlog.Event{ID: fmt.Sprintf("undo-%d", s.conv.Head()), Body: &eventlog.Compaction{Decision: &eventlog.CompactionDecision{Undoes: from}}}); err != nil {
						t.Fatalf("%v", err)
					}
					for _, r := range readers {
						if r.last != nil && s.conv.VoidSince(r.last.head) > 0 {
							r.state, r.last = reduce.State{}, nil
						}
					}
				}
			case 2, 3:
				r.reduceAny(t, r.policy, r.budget)
			default:
				if err := s.append(genEvent(t, s.log.head, &at)); err != nil {
					t.Fatalf("%v", err)
				}
			}
		}
		for _, r := range readers {
			r.reduceAny(t, r.policy, r.budget)
		}
	})
}

// A compaction ends where reminders take the whole target, whatever its goal is.
func TestCompactionsBesideReminders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, policy, b := newSession(), genPolicy().Draw(t, "policy"), genBudget().Draw(t, "budget")
		var at time.Duration
		for range rapid.IntRange(2, 20).Draw(t, "events") {
			if err := s.append(genEvent(t, s.log.head, &at)); err != nil {
				t.Fatalf("%v", err)
			}
		}
		ask := genCompaction(b).Draw(t, "ask")
		ask.Reserved, ask.Goal, ask.Strategy = b.Target, rapid.SampledFrom([]uint64{0, b.Target + 1, 4 * b.Target}).Draw(t, "goal"), reduce.Drop
		c, nothing, err := reduce.NewPipeline(policy, s.conv).Decide(b, s.state, ask, reduce.Summary{})
		if err != nil {
			return // what must stay does not fit
		}
		if (c == nil) != (nothing != "") || c != nil && c.Decision.DigestTokens == 0 {
			t.Fatalf("%+v was decided, and nothing to do is %q", c, nothing)
		}
	})
}

// reduceAny is reduce where a refusal will do.
func (s *session) reduceAny(t fataler, p reduce.Policy, b budget.Budget) {
	_, _ = s.reduce(t, p, b, reduce.Ask{})
}

// The target of a compaction is reached wherever what must stay leaves room for it.
func TestATargetIsReached(t *testing.T) {
	for _, strategy := range []reduce.Strategy{reduce.Drop, reduce.Summarize} {
		for _, goal := range []uint64{2200, 3000, 8000} {
			s := newSession()
			if err := s.append(longSession(200)...); err != nil {
				t.Fatal(err)
			}
			policy, b := reducetest.Policy(), budget.Budget{Target: 200_000}
			ask := reduce.Ask{Strategy: strategy, Goal: goal}
			if c := s.compact(t, policy, b, ask, strings.Repeat("word ", 30)); c == nil {
				t.Fatalf("%s to %d: nothing to do of %d tokens", strategy, goal, s.conv.Tokens())
			}
			for _, other := range []budget.Budget{b, {Target: 1_000_000}, {Target: 20_000}} {
				got, err := reduce.NewPipeline(policy, s.conv).Run(other, reduce.State{}, reduce.Ask{})
				if err != nil || got.View.Tokens() > goal {
					t.Errorf("%s to %d: %d tokens under a target of %d: %v", strategy, goal, got.View.Tokens(), other.Target, err)
				}
			}
		}
	}
}

// What a decision keeps may be anything: a caller may append one of its own. It takes the
// newest words of a human from nobody all the same.
func TestADecisionOfAnotherHand(t *testing.T) {
	for name, kept := range map[string][]eventlog.Seq{"nothing": nil, "no event": {0}, "what is not there": {1 << 40}} {
		t.Run(name, func(t *testing.T) {
			s := newSession()
			say := func(role eventlog.Role, text string) {
				if err := s.append(eventlog.Event{ID: text, Body: &eventlog.Message{Role: role, Blocks: []eventlog.Block{eventlog.Text{Text: text}}}}); err != nil {
					t.Fatal(err)
				}
			}
			say(eventlog.RoleUser, "first")
			say(eventlog.RoleUser, "second")
			say(eventlog.RoleAssistant, "answer")
			say(eventlog.RoleUser, "newest")
			say(eventlog.RoleAssistant, "another answer")
			for range 2 { // and once more on top of it
				decision := &eventlog.CompactionDecision{Through: 5, DigestTokens: 100, Kept: kept}
				if err := s.append(eventlog.Event{ID: fmt.Sprint("decision ", s.conv.Head()), Body: &eventlog.Compaction{Decision: decision}}); err != nil {
					t.Fatal(err)
				}
				got, err := reduce.NewPipeline(reducetest.Policy(), s.conv).Run(budget.Budget{Target: 10_000}, reduce.State{}, reduce.Ask{})
				if err != nil {
					t.Fatal(err)
				}
				var firsts []eventlog.Seq
				for i := range got.View.Len() {
					firsts = append(firsts, got.View.Group(i).First)
				}
				if fmt.Sprint(firsts) != "[1 4]" {
					t.Errorf("the groups at %v are shown", firsts)
				}
			}
		})
	}
}
