package assemble_test

import (
	"context"
	"errors"
	"iter"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/summarize"
)

// wide is a large budget that the test sessions never exceed, for a named model.
func wide(model string) assemble.Request {
	req := request()
	req.Budget = budget.Spec{Model: model, MaxTokens: 100_000, OverheadTokens: 300, Tokenizer: budget.TokenizerO200K}
	return req
}

func record(t *testing.T, e *assemble.Engine, c records.Call) budget.Calibration {
	t.Helper()
	if c.SessionID == "" {
		c.SessionID = "s"
	}
	learnt, _, err := e.RecordCall(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return learnt
}

// known is the calibration that an assembly at asOf uses, and the size of a rejected context.
func known(t *testing.T, store eventlog.Artifacts, sessionID string, asOf eventlog.Seq, model, tokenizer string) (budget.Calibration, uint64) {
	t.Helper()
	c, rejected, err := records.Calibration(context.Background(), store, sessionID, asOf, budget.Budget{Model: model, Tokenizer: tokenizer})
	if err != nil {
		t.Fatal(err)
	}
	return c, rejected
}

func mustCalls(t *testing.T, store eventlog.Artifacts, sessionID string) []records.ModelCall {
	t.Helper()
	all, _, err := records.CallsAfter(context.Background(), store, sessionID, 0, math.MaxInt)
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
		call := records.Call{
			SessionID: "s", ProjectionID: sent.Projection.ID, Model: "m", InputTokens: estimated * 3 / 2, CacheReadTokens: 10,
			CacheWriteTokens: 20, OutputTokens: 30, StopReason: "end_turn",
		}
		learnt := record(t, engine, call)
		want := records.ModelCall{
			Call: call, Number: 1, Time: time.Unix(0, 0), EstimatedTokens: estimated, Tokenizer: budget.TokenizerO200K,
			Fingerprint: sent.Projection.Fingerprint, After: sent.Projection.ID,
			Calibration: budget.Calibration{}.Observe(estimated, estimated*3/2),
		}
		want.InForce.CollapsedThrough = sent.Projection.After.CollapsedThrough
		want.InForce.EvictedAsOf = sent.Projection.After.EvictedAsOf
		if learnt != want.Calibration || learnt.Factor() <= 1 || want.InForce.CollapsedThrough == 0 || want.InForce.EvictedAsOf == 0 {
			t.Errorf("learnt %+v of %+v", learnt, want)
		}
		rejected := record(t, engine, records.Call{ProjectionID: sent.Projection.ID, Model: "m", Rejected: true})
		if rejected != learnt.Reject(estimated, 0) {
			t.Errorf("after %+v a rejection taught %+v", learnt, rejected)
		}

		store = reopen()
		for _, number := range []uint32{1, 0, 2} {
			got, err := records.GetCall(context.Background(), store, "s", number)
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
		if all := mustCalls(t, store, "s"); len(all) != 2 || all[0].StopReason != "end_turn" {
			t.Errorf("the calls are %+v", all)
		}
		for _, number := range []uint32{3, 4_294_967_295} {
			_, err := records.GetCall(context.Background(), store, "s", number)
			if missing := (*eventlog.NotFoundError)(nil); !errors.As(err, &missing) || missing.Kind != "call" {
				t.Errorf("call %d: %v", number, err)
			}
		}
	})
}

func TestACallNamesTheSummaryInForce(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	push(t, store, "s", opening()...)
	for i := range 30 {
		push(t, store, "s", turn(i)...)
	}
	before := mustAssemble(t, engine, wide("m")).Projection
	compaction := assemble.Compaction{SessionID: "s", TargetTokens: 2000, Summary: "The first modules were read; none of them leaks."}
	plan, err := engine.PlanCompaction(context.Background(), compaction)
	if err != nil || plan.Summary == nil {
		t.Fatalf("the plan is %+v (%v)", plan, err)
	}
	summary, err := engine.PutSummary(context.Background(), *plan.Summary, compaction.Summary)
	if err != nil {
		t.Fatal(err)
	}
	compacted, _, err := engine.Compact(context.Background(), compaction, &summary, marking(t, store, "s"))
	if err != nil || compacted == nil {
		t.Fatalf("compacted: %+v (%v)", compacted, err)
	}
	record(t, engine, records.Call{ProjectionID: before.ID})
	record(t, engine, records.Call{ProjectionID: compacted.Projection.ID})
	all := mustCalls(t, store, "s")
	if in := all[0].InForce; in.SummaryID != "" || in.SummaryVersion != 0 {
		t.Errorf("before the compaction there was %+v", in)
	}
	if in := all[1].InForce; in.SummaryID != summary.ID || in.SummaryVersion != summary.Version || in.SummaryVersion == 0 || in.CollapsedThrough == 0 {
		t.Errorf("after the compaction there is %+v, want %s of version %d", in, summary.ID, summary.Version)
	}
}

// withoutSummaries fails the test where the session's summaries are read.
type withoutSummaries struct {
	eventlog.Store
	t *testing.T
}

func (s withoutSummaries) Artifacts(ctx context.Context, id string, q eventlog.ArtifactQuery) iter.Seq2[eventlog.Artifact, error] {
	if q.Kind == summarize.ArtifactKind {
		s.t.Error("all summaries were read")
	}
	return s.Store.Artifacts(ctx, id, q)
}

// TestACallReadsNoSummaries: its record has what there is to say of the one in force.
func TestACallReadsNoSummaries(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	push(t, store, "s", opening()...)
	sent := mustAssemble(t, newEngine(t, store), wide("m")).Projection
	sent.After.Summary, sent.SummaryVersion = "s9-0000", 3
	var err error
	if sent.ID, err = records.NextID(t.Context(), store, "s", sent.AsOf); err != nil {
		t.Fatal(err)
	}
	all, err := sent.Prepare(t.Context(), store, "s", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.PutArtifacts(t.Context(), "s", all...); err != nil {
		t.Fatal(err)
	}
	if _, err := records.Report(t.Context(), withoutSummaries{store, t}, 0, sent.AsOf, records.Call{SessionID: "s", ProjectionID: sent.ID, InputTokens: 9}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if in := mustCalls(t, store, "s")[0].InForce; in.SummaryID != "s9-0000" || in.SummaryVersion != 3 {
		t.Errorf("in force is %+v", in)
	}
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
		first := record(t, engine, records.Call{ProjectionID: early.ID, InputTokens: estimated * 2})
		push(t, store, "s", turn(3)...)
		late := mustAssemble(t, engine, wide("m")).Projection
		second := record(t, engine, records.Call{ProjectionID: late.ID, InputTokens: estimated * 2})
		// Reported late, it is learnt from all the same, and numbered after.
		third := record(t, engine, records.Call{ProjectionID: early.ID, InputTokens: estimated * 2})
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
			for _, c := range mustCalls(t, store, id) {
				got = append(got, c.Calibration)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("a fork at %d knows %+v, want %+v", at, got, want)
			}
			if len(want) > 0 {
				c := record(t, engine, records.Call{SessionID: id, ProjectionID: early.ID, InputTokens: estimated * 2})
				if last := want[len(want)-1]; c != last.Observe(estimated, estimated*2) {
					t.Errorf("a fork at %d went from %+v to %+v", at, last, c)
				}
				mustCalls(t, store, id)
			}
		}
		if len(mustCalls(t, store, "s")) != 3 {
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
					if _, _, err := engine.RecordCall(context.Background(), records.Call{SessionID: "s", ProjectionID: p.ID, Rejected: true}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		calls := mustCalls(t, store, "s")
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
			call records.Call
			want eventlog.NotFoundError
		}{
			"no session":        {records.Call{SessionID: "nobody", ProjectionID: "p1-0001"}, eventlog.NotFoundError{Kind: "session", Name: "nobody"}},
			"no projection":     {records.Call{SessionID: "s", ProjectionID: "p2-0001"}, eventlog.NotFoundError{Kind: "projection", Name: "p2-0001"}},
			"no id":             {records.Call{SessionID: "s", ProjectionID: "soup"}, eventlog.NotFoundError{Kind: "projection", Name: "soup"}},
			"beyond the log":    {records.Call{SessionID: "s", ProjectionID: "p99-0001"}, eventlog.NotFoundError{Kind: "projection", Name: "p99-0001"}},
			"neither":           {records.Call{SessionID: "nobody"}, eventlog.NotFoundError{Kind: "session", Name: "nobody"}},
			"an id that is not": {records.Call{SessionID: "s", ProjectionID: "p2-1"}, eventlog.NotFoundError{Kind: "projection", Name: "p2-1"}},
		} {
			_, _, err := engine.RecordCall(context.Background(), c.call)
			var missing *eventlog.NotFoundError
			if !errors.As(err, &missing) || *missing != c.want {
				t.Errorf("%s: %v, want %v", name, err, &c.want)
			}
		}
		if calls := mustCalls(t, store, "s"); len(calls) > 0 {
			t.Errorf("recorded %+v", calls)
		}
		if _, _, err := records.CallsAfter(context.Background(), store, "nobody", 0, math.MaxInt); !errors.As(err, new(*eventlog.NotFoundError)) {
			t.Errorf("calls of nobody: %v", err)
		}
	})
}

func TestDamagedCalls(t *testing.T) {
	for name, a := range map[string]eventlog.Artifact{
		"no message":  {Kind: "call", Seq: 1, ID: "c0000000001", Value: []byte("{")},
		"a newer one": {Kind: "call", Seq: 1, ID: "c0000000001", Value: []byte("\x08\x02")},
		"a wrong id":  {Kind: "call", Seq: 1, ID: "c1", Value: []byte("\x08\x01")},
	} {
		t.Run(name, func(t *testing.T) {
			store := memlog.New()
			defer closeStore(t, store)
			engine := newEngine(t, store)
			push(t, store, "s", opening()...)
			if err := store.PutArtifacts(context.Background(), "s", a); err != nil {
				t.Fatal(err)
			}
			if _, _, err := engine.RecordCall(context.Background(), records.Call{SessionID: "s", Model: "m"}); err == nil || !strings.Contains(err.Error(), a.ID) {
				t.Errorf("recording behind it: %v", err)
			}
		})
	}
}
