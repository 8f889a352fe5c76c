package assemble_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/decide"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
)

// busy asks for a context in which a result of any size may be masked, but is masked only by a compaction.
func busy() assemble.Request {
	req := summarized(byModel)
	req.Policy.Reduction.ToolResults = reduce.ToolResults{OutlineTokens: 20}
	// No cuts are forced, so that compactions find something to do.
	req.Policy.Reduction.Collapse.To, req.Policy.Reduction.Collapse.CutFrom = 0.35, 0
	return req
}

// compaction asks for a compaction of a session whose summaries a model makes.
func compaction(strategy reduce.Strategy) assemble.Compaction {
	return assemble.Compaction{SessionID: "s", Request: busy(), Strategy: strategy}
}

// compacted plans a compaction, has its summary made, and carries it out. It returns nil if there is
// nothing to do.
func (w *world) compacted(c assemble.Compaction) *assemble.Compacted {
	w.tb.Helper()
	done, err := w.compactedOr(c)
	if err != nil {
		w.tb.Fatal(err)
	}
	return done
}

// compactedOr is compacted, but returns the error instead of failing.
func (w *world) compactedOr(c assemble.Compaction) (*assemble.Compacted, error) {
	ctx := context.Background()
	plan, err := w.engine.PlanCompaction(ctx, c)
	if err != nil || plan.Nothing != "" {
		return nil, err
	}
	c.Strategy = plan.Strategy
	var made *summarize.Summary
	if plan.Summary != nil {
		var s summarize.Summary
		if c.Summary != "" {
			s, err = w.engine.PutSummary(ctx, *plan.Summary, c.Summary)
		} else {
			s, err = w.scheduler.Do(ctx, *plan.Summary)
		}
		if err != nil {
			return nil, err
		}
		made = &s
	}
	done, _, err := w.engine.Compact(ctx, c, made, marking(w.tb, w.store, c.SessionID))
	if err == nil && done != nil {
		err = done.Unrecorded
	}
	return done, err
}

// marking returns a Mark that appends the event of a compaction, as package compaction does.
func marking(tb rapid.TB, store eventlog.Store, id string) assemble.Mark {
	return func(ctx context.Context, done *assemble.Compacted) (eventlog.Seq, error) {
		return mark(ctx, tb, store, id, done.Event)
	}
}

func mark(ctx context.Context, tb rapid.TB, store eventlog.Store, id string, body *eventlog.Compaction) (eventlog.Seq, error) {
	info, err := store.Session(ctx, id)
	if err != nil {
		return 0, err
	}
	push(tb, store, id, eventlog.Event{ID: fmt.Sprintf("mark-%d", info.Head), Body: body})
	return info.Head + 1, nil
}

// Twenty compactions and more, of every kind, on top of each other: no call is lost, no
// result without its call, and a restart, a fork and a replay give the same bytes.
func TestChainedCompactions(t *testing.T) {
	kinds := []struct {
		name string
		make func(i int) assemble.Compaction
	}{
		{"mask", func(int) assemble.Compaction { return compaction(reduce.Mask) }},
		{"window", func(int) assemble.Compaction { return compaction(reduce.Drop) }},
		{"summarize", func(int) assemble.Compaction { return compaction(reduce.Summarize) }},
		{"own text", func(i int) assemble.Compaction {
			c := compaction("")
			c.Summary = fmt.Sprintf("Until turn %d no handler leaks.\nGo on with the next ones.", i)
			return c
		}},
		{"any", func(int) assemble.Compaction { return compaction("") }},
	}
	onBothStores(t, func(t *testing.T, store eventlog.Store, reopen func() eventlog.Store) {
		ctx := context.Background()
		model := &scripted{answer: writes}
		w := newWorld(t, store, model)
		defer func() { w.close() }()
		push(t, store, "s", opening()...)
		done, forced, made := map[string]int{}, 0, 0
		calls := map[eventlog.Seq]int{} // made up to an event
		var before *assemble.Context
		for i := range 96 {
			events, n := busyTurn(i)
			push(t, store, "s", events...)
			made += n
			got := w.assemble(busy())
			audit(t, got, made)
			if cut(t, before, got) {
				forced++
			}
			w.between()
			before, calls[got.AsOf] = got, made
			if i%3 != 2 || i/24 == 1 { // then the budget has to force it
				continue
			}
			kind := kinds[i/3%len(kinds)]
			c := w.compacted(kind.make(i))
			after := w.assemble(busy())
			audit(t, after, made)
			calls[after.AsOf] = made
			if c != nil && (c.Before.Tokens != got.Projection.Tokens || c.Before.Messages != got.MessageCount) {
				t.Fatalf("turn %d: %s began at %+v; the context held %d tokens", i, kind.name, c.Before, got.Projection.Tokens)
			}
			if before = after; c == nil {
				if after.Cache.BrokenBy != "" {
					t.Fatalf("turn %d: %s did nothing and changed the prefix", i, kind.name)
				}
				continue
			}
			done[kind.name]++
			if c.After.Tokens >= c.Before.Tokens || c.After.Tokens != after.Projection.Tokens || c.Projection.PrefixHash != after.PrefixHash {
				t.Fatalf("turn %d: %s left %d of %d tokens; the next context has %d", i, kind.name, c.After.Tokens, c.Before.Tokens, after.Projection.Tokens)
			}
			if own := kind.make(i).Summary; own != "" && !strings.Contains(digestOf(after), quoted(own)) {
				t.Fatalf("turn %d: the caller's text is not quoted:\n%s", i, digestOf(after))
			}
		}
		total := forced
		for _, kind := range kinds {
			if total += done[kind.name]; done[kind.name] == 0 {
				t.Errorf("%s never had anything to do", kind.name)
			}
		}
		if total < 20 || forced == 0 {
			t.Errorf("%d compactions (%v), %d of them forced; the test wants 20", total, done, forced)
		}
		recorded := mustReplay(t, w, "s")

		w.close()
		store = reopen()
		w = newWorld(t, store, model)
		again := w.assemble(busy())
		if lines(again.Messages) != lines(before.Messages) || again.Cache.BrokenBy != "" {
			t.Errorf("other bytes after a restart: %+v", again.Cache)
		}
		if n := mustReplay(t, w, "s"); n != recorded+1 {
			t.Errorf("%d records before the restart, %d after it", recorded, n)
		}
		all, err := logtest.Collect(records.After(ctx, w.store, "s", ""))
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range all {
			if i%20 != 0 && i != len(all)-1 || i+1 < len(all) && all[i+1].AsOf == r.AsOf {
				continue
			}
			id := fmt.Sprintf("fork-%d", i)
			if _, err := store.Fork(ctx, eventlog.ForkRequest{ParentID: "s", At: r.AsOf, NewID: id}); err != nil {
				t.Fatal(err)
			}
			req := busy()
			req.SessionID = id
			got := w.assemble(req)
			audit(t, got, calls[r.AsOf])
			if got.PrefixHash != r.PrefixHash {
				t.Errorf("a fork at %s shows something else", r.ID)
			}
			mustReplay(t, w, id)
		}
	})
}

func TestPlans(t *testing.T) {
	onBothStores(t, func(t *testing.T, store eventlog.Store, _ func() eventlog.Store) {
		ctx := context.Background()
		w := started(t, store, &scripted{answer: writes})
		push(t, store, "s", opening()...)
		plan := func(c assemble.Compaction) decide.Plan {
			t.Helper()
			p, err := w.engine.PlanCompaction(ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		if p := plan(compaction("")); p.Nothing == "" {
			t.Errorf("a session without turns has this to compact: %+v", p)
		}
		for i := range 14 {
			push(t, store, "s", turn(i)...)
		}
		got := w.assemble(busy())
		goal := got.Budget.Target * 35 / 100
		p := plan(compaction(""))
		if p.Nothing != "" || p.Before.Tokens != got.Projection.Tokens || p.Before.Messages != got.MessageCount || p.TargetTokens != goal || p.KeepLastTurns != 2 {
			t.Errorf("with everything left open the plan is %+v; the context has %d tokens", p, got.Projection.Tokens)
		}
		hard := compaction("")
		hard.TargetTokens = 1000
		if p = plan(hard); p.Strategy != reduce.Summarize || p.Summary == nil || p.Summary.SessionID != "s" || p.Summary.Summarizer != byModel || p.Summary.To >= got.AsOf {
			t.Errorf("masking does not suffice, and the plan is %+v", p)
		}
		easy := compaction("")
		easy.TargetTokens = got.Projection.Tokens * 3 / 4
		if p := plan(easy); p.Strategy != reduce.Mask || p.Nothing != "" {
			t.Errorf("masking suffices, and the plan is %+v", p)
		}
		for name, c := range map[string]assemble.Compaction{
			"it is as small as asked": {TargetTokens: got.Projection.Tokens},
			"all turns are spared":    {KeepLastTurns: 14, Strategy: reduce.Drop, TargetTokens: 1000},
			"all are spared, masked":  {KeepLastTurns: 14, Strategy: reduce.Mask, TargetTokens: 1000},
			"all are spared, summary": {KeepLastTurns: 15, Strategy: reduce.Summarize, TargetTokens: 1000},
		} {
			c.SessionID, c.Request = "s", busy()
			if p := plan(c); p.Nothing == "" || p.Summary != nil {
				t.Errorf("%s, and the plan is %+v", name, p)
			}
		}
		long := compaction("")
		long.Summary = strings.Repeat("every word of it counts. ", 1000)
		_, err := w.engine.PlanCompaction(ctx, long)
		wantField(t, err, "summary")
		var missing *eventlog.NotFoundError
		nobody := compaction("")
		nobody.SessionID = "nobody"
		if _, err := w.engine.PlanCompaction(ctx, nobody); !errors.As(err, &missing) || missing.Kind != "session" {
			t.Errorf("of a session that is not there: %v", err)
		}
		if n := mustReplay(t, w, "s"); n != 1 || len(w.summaries("s")) != 0 {
			t.Errorf("planning recorded %d projections beside the one that was asked for, and %d summaries", n-1, len(w.summaries("s")))
		}
	})
}

// If the caller names no strategy, and the groups are too small to be worth a summary, they are dropped
// without one.
func TestAnOpenStrategyDoesWhatItCan(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	w := started(t, store, &scripted{answer: writes})
	push(t, store, "s", opening()...)
	for i := range 12 {
		push(t, store, "s", turn(i)...)
	}
	c := compaction("")
	c.Request.Budget.MaxTokens, c.TargetTokens = 100_000, 1000
	plan, err := w.engine.PlanCompaction(context.Background(), c)
	if err != nil || plan.Nothing != "" || plan.Strategy != reduce.Drop || plan.Summary != nil {
		t.Errorf("%+v, %v", plan, err)
	}
	c.Strategy = reduce.Summarize
	if plan, err := w.engine.PlanCompaction(context.Background(), c); err != nil || plan.Nothing != "" || plan.Summary == nil {
		t.Errorf("a summary that is asked for is not planned: %+v, %v", plan, err)
	}
}

// Between plan and compaction the log may grow, and others may compact the session.
func TestTheLogGrowsBetweenPlanAndDeed(t *testing.T) {
	onBothStores(t, func(t *testing.T, store eventlog.Store, _ func() eventlog.Store) {
		ctx := context.Background()
		w := started(t, store, &scripted{answer: writes})
		push(t, store, "s", opening()...)
		for i := range 14 {
			push(t, store, "s", turn(i)...)
		}
		c := compaction(reduce.Summarize)
		plan, err := w.engine.PlanCompaction(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		s, err := w.scheduler.Do(ctx, *plan.Summary)
		if err != nil {
			t.Fatal(err)
		}
		push(t, store, "s", turn(14)...)
		push(t, store, "s", turn(15)...)
		done, _, err := w.engine.Compact(ctx, c, &s, marking(t, store, "s"))
		if err != nil || done == nil {
			t.Fatalf("with a longer log: %+v, %v", done, err)
		}
		if through := done.Projection.After.CollapsedThrough; done.Projection.After.Summary != s.ID || through != s.To {
			t.Errorf("the run ends at %d with summary %q, want %d with %q", through, done.Projection.After.Summary, s.To, s.ID)
		}
		got := w.assemble(busy())
		audit(t, got, 16)
		if again, _, err := w.engine.Compact(ctx, c, &s, marking(t, store, "s")); err != nil || again != nil {
			t.Errorf("done twice: %+v, %v", again, err)
		}
		for _, id := range done.Event.KeptEventIDs {
			if !strings.Contains(id, "call_") && id != "system" && id != "user" {
				t.Errorf("an event %q is kept", id)
			}
		}
		if err := store.DeleteSession(ctx, "s", 0, nil); err != nil {
			t.Fatal(err)
		}
		var missing *eventlog.NotFoundError
		if _, _, err := w.engine.Compact(ctx, c, &s, marking(t, store, "s")); !errors.As(err, &missing) {
			t.Errorf("of a session that was deleted: %v", err)
		}
		if _, err := w.engine.PutSummary(ctx, *plan.Summary, "none"); !errors.As(err, &missing) {
			t.Errorf("a text for a session that was deleted: %v", err)
		}
	})
}

// If the caller gives up after its compaction was marked, the compaction is recorded all the same.
func TestTheCallerLeavesAfterTheMark(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	w := started(t, store, &scripted{answer: writes})
	push(t, store, "s", opening()...)
	for i := range 14 {
		push(t, store, "s", turn(i)...)
	}
	ctx, leave := context.WithCancel(t.Context())
	marked := marking(t, store, "s")
	done, _, err := w.engine.Compact(ctx, compaction(reduce.Drop), nil, func(ctx context.Context, done *assemble.Compacted) (eventlog.Seq, error) {
		defer leave()
		return marked(ctx, done)
	})
	if err != nil || done == nil || done.Unrecorded != nil || done.Projection.ID == "" {
		t.Errorf("%+v, %v", done, err)
	}
}
