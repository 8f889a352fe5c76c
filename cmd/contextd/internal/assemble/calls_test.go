package assemble_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextd/contextd/cmd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
)

// wide is a budget that the test sessions stay within, for a model with a name.
func wide(model string) assemble.Request {
	req := request()
	req.Budget = budget.Spec{Model: model, MaxTokens: 100_000, OverheadTokens: 300, Tokenizer: budget.TokenizerO200K}
	return req
}

func record(t *testing.T, e *assemble.Engine, c assemble.Call) budget.Calibration {
	t.Helper()
	if c.SessionID == "" {
		c.SessionID = "s"
	}
	learnt, err := e.RecordCall(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return learnt
}

// known is what an assembly at asOf would be corrected by.
func known(t *testing.T, e *assemble.Engine, sessionID string, asOf eventlog.Seq, model, tokenizer string) (budget.Calibration, uint64) {
	t.Helper()
	c, rejected, err := e.Calibration(context.Background(), sessionID, asOf, budget.Budget{Model: model, Tokenizer: tokenizer})
	if err != nil {
		t.Fatal(err)
	}
	return c, rejected
}

func mustCalls(t *testing.T, e *assemble.Engine, sessionID string) []assemble.RecordedCall {
	t.Helper()
	all, err := e.Calls(context.Background(), sessionID)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range all {
		if c.Number != uint32(i+1) || c.SessionID != sessionID {
			t.Errorf("call %d of %q has the number %d in %q", i+1, sessionID, c.Number, c.SessionID)
		}
	}
	return all
}

func TestCallsAreKeptWithWhatWasInForce(t *testing.T) {
	onBothStores(t, func(t *testing.T, store eventlog.Store, reopen func() eventlog.Store) {
		engine := newEngine(t, store)
		push(t, store, "s", opening()...)
		var sent *assemble.Context
		for i := range turns { // the tight budget forces cuts
			push(t, store, "s", turn(i)...)
			sent = mustAssemble(t, engine, request())
		}
		estimated := sent.Projection.Tokens
		call := assemble.Call{
			SessionID: "s", ProjectionID: sent.Projection.ID, Model: "m", InputTokens: estimated * 3 / 2, CacheReadTokens: 10,
			CacheWriteTokens: 20, OutputTokens: 30, StopReason: "end_turn",
		}
		learnt := record(t, engine, call)
		want := assemble.RecordedCall{
			Call: call, Number: 1, Time: time.Unix(0, 0), EstimatedTokens: estimated, Tokenizer: budget.TokenizerO200K,
			Fingerprint: sent.Projection.Fingerprint, After: sent.Projection.ID,
			Calibration: budget.Calibration{}.Observe(estimated, estimated*3/2),
		}
		want.InForce.CollapsedThrough = sent.Projection.After.CollapsedThrough
		want.InForce.EvictedAsOf = sent.Projection.After.EvictedAsOf
		if learnt != want.Calibration || learnt.Factor() <= 1 || want.InForce.CollapsedThrough == 0 || want.InForce.EvictedAsOf == 0 {
			t.Errorf("learnt %+v of %+v", learnt, want)
		}
		rejected := record(t, engine, assemble.Call{ProjectionID: sent.Projection.ID, Model: "m", Rejected: true})
		if rejected != learnt.Reject(estimated, 0) {
			t.Errorf("after %+v a rejection taught %+v", learnt, rejected)
		}

		engine = newEngine(t, reopen())
		for _, number := range []uint32{1, 0, 2} {
			got, err := engine.Call(context.Background(), "s", number)
			if err != nil {
				t.Fatal(err)
			}
			got.Time = got.Time.In(time.Local)
			if number == 1 && !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
			if number != 1 && (got.Number != 2 || !got.Rejected || got.Calibration != rejected) {
				t.Errorf("call %d is %+v", number, got)
			}
		}
		if all := mustCalls(t, engine, "s"); len(all) != 2 || all[0].StopReason != "end_turn" {
			t.Errorf("the calls are %+v", all)
		}
		for _, number := range []uint32{3, 4_294_967_295} {
			_, err := engine.Call(context.Background(), "s", number)
			if missing := (*eventlog.NotFoundError)(nil); !errors.As(err, &missing) || missing.Kind != "call" {
				t.Errorf("call %d: %v", number, err)
			}
		}
	})
}

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

	one := record(t, engine, assemble.Call{ProjectionID: p.ID, Model: "big-0821", InputTokens: estimated * 2})
	if want := (budget.Calibration{}).Observe(estimated, estimated*2); one != want {
		t.Fatalf("learnt %+v, want %+v", one, want)
	}
	other := record(t, engine, assemble.Call{ProjectionID: p.ID, Model: "small", InputTokens: estimated})
	if want := (budget.Calibration{}).Observe(estimated, estimated); other != want {
		t.Errorf("the first call of another model taught %+v, want %+v", other, want)
	}
	if got := record(t, engine, assemble.Call{ProjectionID: p.ID, Model: "big-0821"}); got != one {
		t.Errorf("a call without a count turned %+v into %+v", one, got)
	}
	if got := record(t, engine, assemble.Call{Model: "big-0821", InputTokens: 900_000, Rejected: true}); got != one {
		t.Errorf("a call from no projection turned %+v into %+v", one, got)
	}
	two := record(t, engine, assemble.Call{ProjectionID: p.ID, Model: "big-0821", InputTokens: estimated * 2})
	if want := one.Observe(estimated, estimated*2); two != want {
		t.Errorf("the second call taught %+v, want %+v", two, want)
	}
	if all := mustCalls(t, engine, "s"); len(all) != 5 || all[3].EstimatedTokens != 0 || all[3].Tokenizer != "" || all[0].BudgetModel != "big" {
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
		if got, rejected := known(t, engine, "s", c.asOf, c.model, c.tokenizer); got != c.want || rejected != 0 {
			t.Errorf("%s: %+v (%d), want %+v", name, got, rejected, c.want)
		}
	}

	unnamed := mustAssemble(t, engine, wide("")).Projection
	three := record(t, engine, assemble.Call{ProjectionID: unnamed.ID, InputTokens: estimated * 2})
	if got, _ := known(t, engine, "s", head, "", budget.TokenizerO200K); got != three || got.Calls != 1 {
		t.Errorf("a budget without a model gets %+v, want %+v", got, three)
	}
	record(t, engine, assemble.Call{ProjectionID: p.ID, InputTokens: estimated})
	if last, err := engine.Call(context.Background(), "s", 0); err != nil || last.Model != "big" {
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
	record(t, engine, assemble.Call{ProjectionID: p.ID, Model: "big-0821", Rejected: true})
	for _, model := range []string{"big", "big-0821"} {
		if _, rejected := known(t, engine, "s", p.AsOf, model, budget.TokenizerO200K); rejected != p.Tokens+300 {
			t.Errorf("%s was not rejected", model)
		}
	}
	mustAssemble(t, engine, wide("big"))
	for _, model := range []string{"big", "big-0821"} {
		if _, rejected := known(t, engine, "s", p.AsOf, model, budget.TokenizerO200K); rejected != 0 {
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
		record(t, engine, assemble.Call{ProjectionID: first.ID, Rejected: true})
		head := first.AsOf
		expect := func(when string, want uint64) {
			t.Helper()
			c, rejected := known(t, engine, "s", head, "m", budget.TokenizerO200K)
			if rejected != want || c.Factor() < 1.15 {
				t.Errorf("%s: %d tokens were rejected at %v, want %d", when, rejected, c.Factor(), want)
			}
		}
		size := first.Tokens + 300 // as long as the log stays the same
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
		record(t, engine, assemble.Call{ProjectionID: again.ID, Rejected: true})
		expect("rejected again", size)
		push(t, store, "s", text("next", eventlog.RoleUser, "Shorter, please."))
		head++
		expect("as the log grows", size)
		last := mustAssemble(t, engine, wide("m")).Projection
		record(t, engine, assemble.Call{ProjectionID: last.ID, InputTokens: 600})
		expect("accepted", 0)
	})
}

func TestCallsOfAFork(t *testing.T) {
	onBothStores(t, func(t *testing.T, store eventlog.Store, _ func() eventlog.Store) {
		engine := newEngine(t, store)
		push(t, store, "s", opening()...)
		for i := range 3 {
			push(t, store, "s", turn(i)...)
		}
		early := mustAssemble(t, engine, wide("m")).Projection
		estimated := early.Tokens + 300
		first := record(t, engine, assemble.Call{ProjectionID: early.ID, InputTokens: estimated * 2})
		push(t, store, "s", turn(3)...)
		late := mustAssemble(t, engine, wide("m")).Projection
		second := record(t, engine, assemble.Call{ProjectionID: late.ID, InputTokens: estimated * 2})
		// Reported late, it is learnt from all the same, and numbered behind.
		third := record(t, engine, assemble.Call{ProjectionID: early.ID, InputTokens: estimated * 2})
		if second.Calls != 2 || third.Calls != 3 {
			t.Errorf("learnt %+v, then %+v", second, third)
		}
		for at, want := range map[eventlog.Seq][]budget.Calibration{
			early.AsOf - 1: nil, early.AsOf: {first}, late.AsOf - 1: {first}, late.AsOf: {first, second, third},
		} {
			id := "fork" + strings.Repeat("x", int(at))
			if _, err := store.Fork(context.Background(), eventlog.ForkRequest{ParentID: "s", At: at, NewID: id, Time: time.Unix(1, 0)}); err != nil {
				t.Fatal(err)
			}
			var got []budget.Calibration
			for _, c := range mustCalls(t, engine, id) {
				got = append(got, c.Calibration)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("a fork at %d knows %+v, want %+v", at, got, want)
			}
			if len(want) > 0 {
				c := record(t, engine, assemble.Call{SessionID: id, ProjectionID: early.ID, InputTokens: estimated * 2})
				if last := want[len(want)-1]; c != last.Observe(estimated, estimated*2) {
					t.Errorf("a fork at %d went from %+v to %+v", at, last, c)
				}
				mustCalls(t, engine, id)
			}
		}
		if len(mustCalls(t, engine, "s")) != 3 {
			t.Error("the forks' calls are among those of their parent")
		}
	})
}

func TestCallsReportedAtOnce(t *testing.T) {
	onBothStores(t, func(t *testing.T, store eventlog.Store, _ func() eventlog.Store) {
		engine := newEngine(t, store)
		push(t, store, "s", opening()...)
		p := mustAssemble(t, engine, wide("m")).Projection
		const writers, each = 8, 5
		var all sync.WaitGroup
		for range writers {
			all.Go(func() {
				for range each {
					if _, err := engine.RecordCall(context.Background(), assemble.Call{SessionID: "s", ProjectionID: p.ID, Rejected: true}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		calls := mustCalls(t, engine, "s")
		if len(calls) != writers*each || calls[len(calls)-1].Calibration.Calls != writers*each {
			t.Errorf("%d calls, the last with %+v", len(calls), calls[len(calls)-1])
		}
	})
}

func TestCallsThatCannotBeRecorded(t *testing.T) {
	onBothStores(t, func(t *testing.T, store eventlog.Store, _ func() eventlog.Store) {
		engine := newEngine(t, store)
		push(t, store, "s", opening()...)
		preview := wide("m")
		preview.Preview = true
		mustAssemble(t, engine, preview)
		for name, c := range map[string]struct {
			call assemble.Call
			want eventlog.NotFoundError
		}{
			"no session":        {assemble.Call{SessionID: "nobody", ProjectionID: "p1-0001"}, eventlog.NotFoundError{Kind: "session", Name: "nobody"}},
			"no projection":     {assemble.Call{SessionID: "s", ProjectionID: "p2-0001"}, eventlog.NotFoundError{Kind: "projection", Name: "p2-0001"}},
			"no id":             {assemble.Call{SessionID: "s", ProjectionID: "soup"}, eventlog.NotFoundError{Kind: "projection", Name: "soup"}},
			"beyond the log":    {assemble.Call{SessionID: "s", ProjectionID: "p99-0001"}, eventlog.NotFoundError{Kind: "projection", Name: "p99-0001"}},
			"neither":           {assemble.Call{SessionID: "nobody"}, eventlog.NotFoundError{Kind: "session", Name: "nobody"}},
			"an id that is not": {assemble.Call{SessionID: "s", ProjectionID: "p2-1"}, eventlog.NotFoundError{Kind: "projection", Name: "p2-1"}},
		} {
			_, err := engine.RecordCall(context.Background(), c.call)
			var missing *eventlog.NotFoundError
			if !errors.As(err, &missing) || *missing != c.want {
				t.Errorf("%s: %v, want %v", name, err, &c.want)
			}
		}
		if calls := mustCalls(t, engine, "s"); len(calls) > 0 {
			t.Errorf("recorded %+v", calls)
		}
		if _, err := engine.Calls(context.Background(), "nobody"); !errors.As(err, new(*eventlog.NotFoundError)) {
			t.Errorf("calls of nobody: %v", err)
		}
	})
}

func TestDamagedCalls(t *testing.T) {
	for name, a := range map[string]eventlog.Artifact{
		"no JSON":     {Kind: "call", Seq: 1, ID: "c0000000001", Value: []byte("{")},
		"a newer one": {Kind: "call", Seq: 1, ID: "c0000000001", Value: []byte(`{"Version":2}`)},
		"a wrong id":  {Kind: "call", Seq: 1, ID: "c1", Value: []byte(`{"Version":1}`)},
	} {
		t.Run(name, func(t *testing.T) {
			store := memlog.New()
			defer closeStore(t, store)
			engine := newEngine(t, store)
			push(t, store, "s", opening()...)
			if err := store.PutArtifact(context.Background(), "s", a); err != nil {
				t.Fatal(err)
			}
			if _, err := engine.RecordCall(context.Background(), assemble.Call{SessionID: "s", Model: "m"}); err == nil || !strings.Contains(err.Error(), a.ID) {
				t.Errorf("recording behind it: %v", err)
			}
		})
	}
}
