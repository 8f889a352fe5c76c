package assemble_test

import (
	"context"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/records"
)

func TestWhatACallIsComparedWith(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	push(t, store, "s", opening()...)
	for i := range 5 {
		push(t, store, "s", turn(i)...)
	}
	p := mustAssemble(t, engine, wide("big")).Projection
	estimated := p.Tokens + 300 // what the caller sends beside the messages
	push(t, store, "s", text("bye", eventlog.RoleUser, "Thank you."))
	head := p.AsOf + 1

	one := record(t, engine, records.Call{ProjectionID: p.ID, Model: "big-0821", InputTokens: estimated * 2})
	if want := (budget.Calibration{}).Observe(estimated, estimated*2); one != want {
		t.Fatalf("learnt %+v, want %+v", one, want)
	}
	other := record(t, engine, records.Call{ProjectionID: p.ID, Model: "small", InputTokens: estimated})
	if want := (budget.Calibration{}).Observe(estimated, estimated); other != want {
		t.Errorf("the first call of another model taught %+v, want %+v", other, want)
	}
	if got := record(t, engine, records.Call{ProjectionID: p.ID, Model: "big-0821"}); got != one {
		t.Errorf("a call without a count turned %+v into %+v", one, got)
	}
	if got := record(t, engine, records.Call{Model: "big-0821", InputTokens: 900_000, Rejected: true}); got != one {
		t.Errorf("a call from no projection turned %+v into %+v", one, got)
	}
	two := record(t, engine, records.Call{ProjectionID: p.ID, Model: "big-0821", InputTokens: estimated * 2})
	if want := one.Observe(estimated, estimated*2); two != want {
		t.Errorf("the second call taught %+v, want %+v", two, want)
	}
	if all := mustCalls(t, store, "s"); len(all) != 5 || all[3].EstimatedTokens != 0 || all[3].Tokenizer != "" || all[0].BudgetModel != "big" {
		t.Errorf("the calls are %+v", all)
	}

	for name, c := range map[string]struct {
		asOf             eventlog.Seq
		model, tokenizer string
		want             budget.Calibration
	}{
		"its name":               {head, "big-0821", budget.TokenizerO200K, two},
		"the budget's name":      {head, "big", budget.TokenizerO200K, two},
		"the other's":            {head, "small", budget.TokenizerO200K, other},
		"one that nobody called": {head, "huge", budget.TokenizerO200K, budget.Calibration{}},
		"no name":                {head, "", budget.TokenizerO200K, budget.Calibration{}},
		"another tokenizer":      {head, "big", budget.TokenizerHeuristic, budget.Calibration{}},
		"before it was called":   {p.AsOf - 1, "big", budget.TokenizerO200K, budget.Calibration{}},
		"an empty log":           {0, "big", budget.TokenizerO200K, budget.Calibration{}},
	} {
		if got, rejected := known(t, store, "s", c.asOf, c.model, c.tokenizer); got != c.want || rejected != 0 {
			t.Errorf("%s: %+v (%d), want %+v", name, got, rejected, c.want)
		}
	}

	unnamed := mustAssemble(t, engine, wide("")).Projection
	three := record(t, engine, records.Call{ProjectionID: unnamed.ID, InputTokens: estimated * 2})
	if got, _ := known(t, store, "s", head, "", budget.TokenizerO200K); got != three || got.Calls != 1 {
		t.Errorf("a budget without a model gets %+v, want %+v", got, three)
	}
	record(t, engine, records.Call{ProjectionID: p.ID, InputTokens: estimated})
	if last, err := records.GetCall(context.Background(), store, "s", 0); err != nil || last.Model != "big" {
		t.Errorf("a call without a model is recorded as %+v (%v)", last, err)
	}
}

// The call goes by another name than the budget that both contexts were made for.
func TestARejectionUnderAnotherName(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	push(t, store, "s", opening()...)
	p := mustAssemble(t, engine, wide("big")).Projection
	record(t, engine, records.Call{ProjectionID: p.ID, Model: "big-0821", Rejected: true})
	for _, model := range []string{"big", "big-0821"} {
		if _, rejected := known(t, store, "s", p.AsOf, model, budget.TokenizerO200K); rejected != p.Tokens {
			t.Errorf("%s was not rejected", model)
		}
	}
	mustAssemble(t, engine, wide("big"))
	for _, model := range []string{"big", "big-0821"} {
		if _, rejected := known(t, store, "s", p.AsOf, model, budget.TokenizerO200K); rejected != 0 {
			t.Errorf("%s was answered, and is rejected still", model)
		}
	}
}

// A rejection is answered once: by the next context that is recorded for the model.
func TestARejectionWaitsForAnAnswer(t *testing.T) {
	onBothStores(t, func(t *testing.T, store eventlog.Store, reopen func() eventlog.Store) {
		engine := newEngine(t, store)
		push(t, store, "s", opening()...)
		first := mustAssemble(t, engine, wide("m")).Projection
		mustAssemble(t, engine, wide("m")) // made before the answer of the first came
		record(t, engine, records.Call{ProjectionID: first.ID, Rejected: true})
		head := first.AsOf
		expect := func(when string, want uint64) {
			t.Helper()
			c, rejected := known(t, store, "s", head, "m", budget.TokenizerO200K)
			if rejected != want || c.Factor() < 1.15 {
				t.Errorf("%s: %d tokens were rejected at %v, want %d", when, rejected, c.Factor(), want)
			}
		}
		size := first.Tokens // as long as the log stays the same
		expect("at once", size)
		mustAssemble(t, engine, wide("another"))
		expect("after a context for another model", size)
		preview := wide("m")
		preview.Preview = true
		mustAssemble(t, engine, preview)
		expect("after a preview", size)
		store = reopen()
		engine = newEngine(t, store)
		expect("after a restart", size)
		again := mustAssemble(t, engine, wide("m")).Projection
		expect("after another context", 0)
		record(t, engine, records.Call{ProjectionID: again.ID, Rejected: true})
		expect("rejected again", size)
		push(t, store, "s", text("next", eventlog.RoleUser, "Shorter, please."))
		head++
		expect("as the log grows", size)
		last := mustAssemble(t, engine, wide("m")).Projection
		record(t, engine, records.Call{ProjectionID: last.ID, InputTokens: 600})
		expect("accepted", 0)
	})
}
