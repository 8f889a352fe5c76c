package assemble_test

import (
	"errors"
	"testing"
	"time"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
)

// shadowOf asks for the shadow of a context under a policy.
func shadowOf(made *assemble.Context, b budget.Spec, p assemble.Policy) assemble.Shadow {
	return assemble.Shadow{
		Name: "other", Policy: p, Budget: b, SessionID: made.SessionID, Of: made.Of, AsOf: made.AsOf,
		ProjectionID: made.Projection.ID, Fingerprint: made.Projection.Fingerprint,
	}
}

func mustShadow(tb testing.TB, e *assemble.Engine, of assemble.Shadow) records.Shadow {
	tb.Helper()
	out, err := e.Shadow(tb.Context(), of)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// A shadow is what its policy would have sent if it had been in use, also across restarts and when computed
// late. The context in use is not affected by it.
func TestAShadowIsWhatItsPolicyWouldHaveSent(t *testing.T) {
	used, other := windowOf(8_192), windowOf(8_192)
	other.Policy.Reduction = reduce.FrugalPolicy()
	shadowed, plain, alone := memlog.New(), memlog.New(), memlog.New()
	engine, without, want := newEngine(t, shadowed), newEngine(t, plain), newEngine(t, alone)
	broken, cold := 0, 0
	var late []assemble.Shadow
	for i := range 120 {
		for _, s := range []eventlog.Store{shadowed, plain, alone} {
			if i == 0 {
				push(t, s, "s", opening()...)
			}
			push(t, s, "s", turn(i)...)
		}
		if i%9 == 8 {
			engine = newEngine(t, shadowed)
			cold++
		}
		got := mustAssemble(t, engine, used)
		if p := mustAssemble(t, without, used); got.PrefixHash != p.PrefixHash || got.Cache != p.Cache || got.Projection.ID != p.Projection.ID {
			t.Fatalf("turn %d: a shadow changes the context in use", i)
		}
		mustAssemble(t, want, other)
		// Where the processor is busy, the log has gone on when a shadow is computed.
		if late = append(late, shadowOf(got, used.Budget, other.Policy)); i%3 != 2 {
			continue
		}
		for _, of := range late {
			r, err := records.Get(t.Context(), alone, "s", of.ProjectionID)
			if err != nil {
				t.Fatal(err)
			}
			s, shared := mustShadow(t, engine, of), records.Shared{}
			if r.Shared != nil {
				shared = *r.Shared
			}
			if expected := (records.Shadow{Policy: "other", Tokens: r.Tokens, Messages: r.MessageCount, StableTokens: shared.Tokens, BrokenBy: shared.BrokenBy}); s != expected {
				t.Fatalf("turn %d, %s: the shadow is %+v, and its policy in use %+v", i, of.ProjectionID, s, expected)
			}
			if kept, err := records.ShadowOf(t.Context(), shadowed, "s", of.AsOf, of.ProjectionID); err != nil || kept == nil || *kept != s {
				t.Fatalf("turn %d: %+v is kept of %+v, %v", i, kept, s, err)
			}
			if s.BrokenBy != "" {
				broken++
			}
		}
		late = late[:0]
	}
	if broken < 3 || cold < 3 {
		t.Errorf("the prefix of the shadow changed %d times, with %d restarts", broken, cold)
	}
}

// No shadow is computed twice, for the policy in use, or for a new session that has the id of the one in
// question.
func TestShadowsThatAreNotComputed(t *testing.T) {
	store := memlog.New()
	push(t, store, "s", opening()...)
	engine, req := newEngine(t, store), windowOf(8_192)
	frugal := assemble.Policy{Reduction: reduce.FrugalPolicy()}
	made := mustAssemble(t, engine, req)
	of := shadowOf(made, req.Budget, frugal)
	if _, err := engine.Shadow(t.Context(), shadowOf(made, req.Budget, req.Policy)); !errors.Is(err, assemble.ErrShadowInUse) {
		t.Errorf("the policy in use: %v", err)
	}
	mustShadow(t, engine, of)
	for _, e := range []*assemble.Engine{engine, newEngine(t, store)} {
		if _, err := e.Shadow(t.Context(), of); !errors.Is(err, assemble.ErrShadowKnown) {
			t.Errorf("once more: %v", err)
		}
	}
	if err := store.DeleteSession(t.Context(), "s", 0, nil); err != nil {
		t.Fatal(err)
	}
	push(t, store, "s", opening()...)
	engine.Forget("s")
	if _, ok := errors.AsType[*eventlog.NotFoundError](func() error { _, err := engine.Shadow(t.Context(), of); return err }()); !ok {
		t.Error("the session is another one, and has a shadow")
	}
	if kept, err := records.ShadowOf(t.Context(), store, "s", of.AsOf, of.ProjectionID); err != nil || kept != nil {
		t.Errorf("%v is kept, %v", kept, err)
	}
}

// If the shadow's policy would have refused the context, that is recorded, and the context in use is not
// affected.
func TestAShadowOverItsBudget(t *testing.T) {
	store := memlog.New()
	push(t, store, "s", opening()...)
	for i := range 20 {
		push(t, store, "s", turn(i)...)
	}
	engine, req := newEngine(t, store), windowOf(4_000)
	full := assemble.Policy{Projection: projection.Options{Name: projection.Full}}
	made := mustAssemble(t, engine, req)
	got := mustShadow(t, engine, shadowOf(made, req.Budget, full))
	if want := (records.Shadow{Policy: "other", OverBudget: true}); got != want {
		t.Errorf("%+v", got)
	}
	if kept, err := records.ShadowOf(t.Context(), store, "s", made.AsOf, made.Projection.ID); err != nil || kept == nil || *kept != got {
		t.Errorf("%v is kept, %v", kept, err)
	}
}

// After a start a shadow reads what it shows, as a context does, and no context reads more for it.
func TestAColdShadowReadsWhatItShows(t *testing.T) {
	store := &readingStore{Store: memlog.New()}
	next := fill(t, store, 12_000)
	req := windowOf(32_768)
	frugal := assemble.Policy{Reduction: reduce.FrugalPolicy()}
	mustShadow(t, newEngine(t, store), shadowOf(mustAssemble(t, newEngine(t, store), req), req.Budget, frugal))
	quiet := 0
	for range 10 {
		push(t, store, "s", turn(next)...)
		next++
		engine := newEngine(t, store)
		made := mustAssemble(t, engine, req)
		store.read = 0
		if s := mustShadow(t, engine, shadowOf(made, req.Budget, frugal)); s.BrokenBy == "" {
			quiet++
			if store.read > 1_000 {
				t.Errorf("%d events of %d were read", store.read, made.AsOf)
			}
		}
	}
	if quiet < 5 {
		t.Errorf("only %d shadows went on from those before", quiet)
	}
}

// A fork has the shadows of its parent, and goes on from what they decided.
func TestShadowsOfAFork(t *testing.T) {
	store := memlog.New()
	push(t, store, "s", opening()...)
	engine, req := newEngine(t, store), windowOf(8_192)
	frugal := assemble.Policy{Reduction: reduce.FrugalPolicy()}
	var made *assemble.Context
	step := func(i int) records.Shadow {
		push(t, store, req.SessionID, turn(i)...)
		made = mustAssemble(t, engine, req)
		return mustShadow(t, engine, shadowOf(made, req.Budget, frugal))
	}
	for i := range 20 {
		step(i)
	}
	if _, err := store.Fork(t.Context(), eventlog.ForkRequest{ParentID: "s", At: made.AsOf, NewID: "fork"}); err != nil {
		t.Fatal(err)
	}
	want := step(20)
	req.SessionID = "fork"
	if got := step(20); got != want || got.StableTokens == 0 {
		t.Errorf("the fork has %+v, and its parent %+v", got, want)
	}
}

// BenchmarkShadow measures contexts with a shadow each, after one more turn of 10,000 events: the time of
// both, and the bytes stored for each.
func BenchmarkShadow(b *testing.B) {
	store := memlog.New()
	next := fill(b, store, 10_000)
	engine, req := newEngine(b, store), windowOf(32_768)
	frugal := assemble.Policy{Reduction: reduce.FrugalPolicy()}
	mustShadow(b, engine, shadowOf(mustAssemble(b, engine, req), req.Budget, frugal))
	var context, shadow time.Duration
	var stored [2]uint64
	size := func() uint64 {
		s, err := store.Session(b.Context(), "s")
		if err != nil {
			b.Fatal(err)
		}
		return s.ArtifactBytes
	}
	for b.Loop() {
		push(b, store, "s", turn(next)...)
		next++
		before, start := size(), time.Now()
		made := mustAssemble(b, engine, req)
		context += time.Since(start)
		between := size()
		start = time.Now()
		mustShadow(b, engine, shadowOf(made, req.Budget, frugal))
		shadow += time.Since(start)
		stored[0] += between - before
		stored[1] += size() - between
	}
	n := float64(b.N)
	b.ReportMetric(float64(context.Nanoseconds())/n, "context-ns/op")
	b.ReportMetric(float64(shadow.Nanoseconds())/n, "shadow-ns/op")
	b.ReportMetric(float64(stored[0])/n, "context-bytes/op")
	b.ReportMetric(float64(stored[1])/n, "shadow-bytes/op")
}
