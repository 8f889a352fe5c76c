package reduce_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/reduce"
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
	policy, target := reduce.DefaultPolicy(), budget.Budget{Target: 8_000}
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
		if _, err := reduce.NewPipeline(policy, conv).Until(ctx).Run(target, reduce.State{}, reduce.Ask{}); !errors.Is(err, context.Canceled) {
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
