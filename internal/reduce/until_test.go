package reduce_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// patience is a context that ends at a look at it.
type patience struct {
	context.Context
	looks, ends int
}

func (p *patience) Err() error {
	if p.looks++; p.ends > 0 && p.looks >= p.ends {
		return context.Canceled
	}
	return nil
}

// TestRunsEndWithTheirContext: wherever a run is when its context ends, it says so and does
// little more, and the next run of the conversation is as if there had been none.
func TestRunsEndWithTheirContext(t *testing.T) {
	log := longSession(300)
	fresh := func() *reduce.Conversation {
		conv := reduce.NewConversation(gauge)
		for _, e := range log {
			conv.Append(e)
		}
		return conv
	}
	policy, target := reducetest.Policy(), budget.Budget{Target: 8_000}
	whole := &patience{Context: t.Context()}
	want, err := reduce.NewPipeline(policy, fresh()).Until(whole).Run(target, reduce.State{}, reduce.Ask{})
	if err != nil {
		t.Fatal(err)
	}
	if whole.looks < 150 {
		t.Fatalf("a run over 300 events looked %d times whether it should end", whole.looks)
	}
	conv := fresh()
	for ends := 1; ends <= whole.looks; ends += 1 + whole.looks/200 {
		ctx := &patience{Context: t.Context(), ends: ends}
		_, err := reduce.NewPipeline(policy, conv).Until(ctx).Run(target, reduce.State{}, reduce.Ask{})
		if err == nil && ctx.looks < ends && ends > whole.looks/2 {
			break // what runs before it gathered it did not gather again
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("ended at look %d of %d: %v", ends, whole.looks, err)
		}
		if more := ctx.looks - ends; more > 64 {
			t.Fatalf("ended at look %d, and looked %d times more", ends, more)
		}
	}
	got, err := reduce.NewPipeline(policy, conv).Run(target, reduce.State{}, reduce.Ask{})
	if err != nil || !reflect.DeepEqual(got.State, want.State) || !reflect.DeepEqual(got.Steps, want.Steps) || got.View.Tokens() != want.View.Tokens() {
		t.Errorf("after those that ended a run gives %+v, %v; want %+v", got.State, err, want.State)
	}
}

// TestReducersLookAtEachGroup whether they should end.
func TestReducersLookAtEachGroup(t *testing.T) {
	log := longSession(300)
	fresh := func() *reduce.Conversation { // one that was reduced looks at what is new
		conv := reduce.NewConversation(gauge)
		for _, e := range log {
			conv.Append(e)
		}
		return conv
	}
	conv := fresh()
	groups, keep := len(conv.Groups()), uint32(1)
	after := reduce.State{EvictedAsOf: conv.Head(), EvictedTurn: conv.Turns(), AskedAsOf: conv.Head()}
	looks := func(policy reduce.Policy, s reduce.State) int {
		ctx := &patience{Context: t.Context()}
		if _, err := reduce.NewPipeline(policy, fresh()).Until(ctx).Run(budget.Budget{Target: 1 << 30}, s, reduce.Ask{}); err != nil {
			t.Fatal(err)
		}
		return ctx.looks
	}
	none := looks(reduce.Policy{}, reduce.State{})
	for name, c := range map[string]struct {
		policy reduce.Policy
		state  reduce.State
		least  int
	}{
		"results and clipping": {reduce.Policy{}, after, 2 * groups},
		"duplicates":           {reduce.Policy{Duplicates: true}, after, looks(reduce.Policy{}, after) + groups},
		"thinking":             {reduce.Policy{Thinking: reduce.Thinking{KeepTurns: &keep}}, after, looks(reduce.Policy{}, after) + groups},
		"digest":               {reduce.Policy{}, reduce.State{CollapsedThrough: conv.Head() / 2, CollapsedFor: 8000, EvictedAsOf: conv.Head()}, groups/2 + groups/2},
	} {
		if got := looks(c.policy, c.state); got < c.least {
			t.Errorf("%s: %d looks over %d groups; want %d", name, got, groups, c.least)
		}
	}
	if none < groups {
		t.Errorf("clipping: %d looks over %d groups", none, groups)
	}
}

// A compaction reads what it drops a few times, however many runs it tries: each look at the context is at a group or a
// reducer.
func TestCompactionReadsGroupsFewTimes(t *testing.T) {
	s := newSession()
	if err := s.append(longSession(3000)...); err != nil {
		t.Fatal(err)
	}
	for _, goal := range []uint64{100_000, 30_000, 8_000} {
		ctx := &patience{Context: t.Context()}
		c, nothing, err := reduce.NewPipeline(reducetest.Policy(), s.conv).Until(ctx).Decide(budget.Budget{Target: 2_000_000}, reduce.State{}, reduce.Ask{Strategy: reduce.Drop, Goal: goal}, reduce.Summary{})
		if err != nil || c == nil {
			t.Fatalf("to %d: %q, %v", goal, nothing, err)
		}
		if groups := len(s.conv.Groups()); ctx.looks > 5*groups {
			t.Errorf("to %d: it looked %d times at %d groups", goal, ctx.looks, groups)
		}
	}
}
