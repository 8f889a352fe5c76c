package compaction_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/compaction"
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/prompt"
)

func pointer[T any](v T) *T { return &v }

// Hooks modify terms in the order in which they subscribed, and the compaction uses the terms after the
// last of them.
func TestHooksModifyInTurn(t *testing.T) {
	w := start(t, &model{answer: writes})
	first := w.serve(func(lifecycle.Call) lifecycle.Reply {
		return lifecycle.Reply{Decision: lifecycle.Modify, KeepLastTurns: pointer(uint32(5)), TargetTokens: pointer(uint64(2200))}
	})
	second := w.serve(func(lifecycle.Call) lifecycle.Reply {
		return lifecycle.Reply{Decision: lifecycle.Modify, KeepLastTurns: pointer(uint32(4)), Strategy: "window"}
	})
	w.open(10)
	before := w.assemble()
	out := w.compact(request(reduce.Mask, 1000))
	if out.Outcome != compaction.Compacted || out.Strategy != reduce.Drop || out.Done.Strategy != reduce.Drop || out.Done.Archived == 0 {
		t.Fatalf("%+v", out)
	}
	asked := lifecycle.Call{
		Hook: lifecycle.PreCompact, SessionID: "s", Mode: "manual", Trigger: eventlog.TriggerManual, Policy: "raw",
		Terms:        lifecycle.Terms{Strategy: "mask", KeepLastTurns: 2, TargetTokens: 1000},
		MessageCount: uint32(before.MessageCount), TokensBefore: before.Projection.Tokens,
	}
	if diff := cmp.Diff(asked, unnamed(<-first.calls)); diff != "" {
		t.Errorf("the first hook was asked otherwise:\n%s", diff)
	}
	asked.Terms = lifecycle.Terms{Strategy: "mask", KeepLastTurns: 5, TargetTokens: 2200}
	if diff := cmp.Diff(asked, unnamed(<-second.calls)); diff != "" {
		t.Errorf("the second hook was asked otherwise:\n%s", diff)
	}
	done := asked
	done.Hook, done.Terms = lifecycle.PostCompact, lifecycle.Terms{Strategy: "window", KeepLastTurns: 4, TargetTokens: 2200}
	done.Result = &lifecycle.Result{
		RemainingMessages: uint32(out.Done.After.Messages), TokensAfter: out.Done.After.Tokens, ArchivedMessages: uint32(out.Done.Archived),
	}
	for name, r := range map[string]*runtime{"first": first, "second": second} {
		if diff := cmp.Diff(done, unnamed(<-r.calls)); diff != "" {
			t.Errorf("the %s hook was told otherwise:\n%s", name, diff)
		}
	}
	turns := map[uint32]bool{}
	for _, e := range w.log() {
		for _, id := range out.Done.Event.KeptEventIDs {
			if m, ok := e.Body.(*eventlog.Message); ok && e.ID == id && m.Role == eventlog.RoleAssistant {
				turns[e.Turn] = true
			}
		}
	}
	if len(turns) < 4 {
		t.Errorf("%d turns stay; the last hook wanted 4", len(turns))
	}
}

func unnamed(c lifecycle.Call) lifecycle.Call {
	c.ID = ""
	return c
}

// If a hook's terms leave nothing to do, the compaction ends there.
func TestHooksMayLeaveNothingToDo(t *testing.T) {
	w := start(t, &model{answer: writes})
	w.serve(func(lifecycle.Call) lifecycle.Reply {
		return lifecycle.Reply{Decision: lifecycle.Modify, TargetTokens: pointer(uint64(1_000_000))}
	})
	w.open(10)
	if out := w.compact(request("", 1000)); out.Outcome != compaction.NothingToDo || out.Detail == "" || out.Event != 0 {
		t.Errorf("%+v", out)
	}
	w.silent()
}

// A hook's strategy counts also where the caller brings a text.
func TestHooksChooseTheStrategyOverTheCallersText(t *testing.T) {
	w := start(t, &model{answer: writes})
	w.serve(func(lifecycle.Call) lifecycle.Reply {
		return lifecycle.Reply{Decision: lifecycle.Modify, Strategy: "mask"}
	})
	w.open(10)
	r := request("", 0)
	r.Summary = "No module leaks so far."
	out := w.compact(r)
	if out.Outcome != compaction.Compacted || out.Strategy != reduce.Mask || out.Done.Summary != nil || out.Done.Archived != 0 {
		t.Errorf("%+v", out)
	}
}

// Where the strategy stays, the caller's text is used under the hook's terms, and no model is asked.
func TestHooksLeaveTheCallersText(t *testing.T) {
	for _, strategy := range []reduce.Strategy{"", reduce.Summarize} {
		m := &model{answer: writes}
		w := start(t, m)
		w.serve(func(lifecycle.Call) lifecycle.Reply {
			return lifecycle.Reply{Decision: lifecycle.Modify, KeepLastTurns: pointer(uint32(3))}
		})
		w.open(10)
		r := request(strategy, 0)
		r.Summary = "No module leaks so far."
		out := w.compact(r)
		if out.Outcome != compaction.Compacted || out.Done.Summary == nil || out.Done.Summary.Text != r.Summary || len(m.asked()) > 0 {
			t.Errorf("%q: %+v, and the model was asked %d times", strategy, out, len(m.asked()))
		}
	}
}

func TestHooksFireByMode(t *testing.T) {
	for mode, fires := range map[string]bool{
		lifecycle.ModeManual: true, lifecycle.ModeHost: true, lifecycle.ModeAuto: true,
		lifecycle.ModeWorkflow: false, lifecycle.ModeWorker: false, lifecycle.ModeResumeDigest: false,
	} {
		t.Run(mode, func(t *testing.T) {
			w := start(t, &model{answer: writes})
			asked := w.serve(block)
			w.open(10)
			r := request(reduce.Drop, 1000)
			r.Mode = mode
			out := w.compact(r)
			if vetoed := out.Outcome == compaction.Vetoed; vetoed != fires {
				t.Errorf("%+v", out)
			}
			if !fires {
				if len(asked.calls) > 0 {
					t.Errorf("hooks were called: %+v", <-asked.calls)
				}
				if all := w.log(); all[len(all)-1].Body.(*eventlog.Compaction).Mode != mode {
					t.Errorf("the log ends with %+v", all[len(all)-1])
				}
			}
		})
	}
}

// If the log grows while hooks are asked, the compaction is planned again for the log as it is, and its
// figures are reported.
func TestTheLogGrowsWhileHooksAreAsked(t *testing.T) {
	for _, decision := range []lifecycle.Decision{lifecycle.Allow, lifecycle.Modify} {
		t.Run(string(decision), func(t *testing.T) {
			w := start(t, &model{answer: writes})
			w.serve(func(lifecycle.Call) lifecycle.Reply {
				w.turns(10, 12)
				return lifecycle.Reply{Decision: decision}
			})
			w.open(10)
			short := w.assemble()
			out := w.compact(request(reduce.Summarize, 1000))
			if out.Outcome != compaction.Compacted || out.Before.Tokens <= short.Projection.Tokens || out.Done.AsOf != short.AsOf+4 || out.Event != short.AsOf+5 {
				t.Errorf("%+v", out)
			}
			after := w.assemble()
			if after.Projection.Tokens != out.Done.After.Tokens || after.PrefixHash != out.Done.Projection.PrefixHash {
				t.Errorf("the next context holds %d tokens, told were %d", after.Projection.Tokens, out.Done.After.Tokens)
			}
		})
	}
}

// vanish deletes the session.
func (w *world) vanish() {
	if err := w.store.DeleteSession(context.Background(), "s", 0, nil); err != nil {
		w.t.Error(err)
	}
	w.engine.Forget("s")
}

// A session that is deleted meanwhile stays deleted.
func TestTheSessionIsDeletedMeanwhile(t *testing.T) {
	check := func(t *testing.T, w *world) {
		t.Helper()
		out, err := w.Compact(t.Context(), request(reduce.Summarize, 1000))
		if err == nil {
			t.Errorf("compacted was what is gone: %+v", out)
		}
		if info, err := w.store.Session(t.Context(), "s"); err == nil {
			t.Errorf("the session is there again, with %d events", info.Head)
		}
	}
	t.Run("while hooks are asked", func(t *testing.T) {
		w := start(t, &model{answer: writes})
		w.serve(func(lifecycle.Call) lifecycle.Reply {
			w.vanish()
			return lifecycle.Reply{}
		})
		w.open(10)
		check(t, w)
	})
	t.Run("while the model writes", func(t *testing.T) {
		var w *world
		w = start(t, &model{answer: func(ctx context.Context, r summarize.Request) (summarize.Output, error) {
			w.vanish()
			return writes(ctx, r)
		}})
		w.open(10)
		check(t, w)
	})
	t.Run("before the mark", func(t *testing.T) {
		var w *world
		w = start(t, &model{answer: writes}, func(o *compaction.Options) {
			o.NewID = func() (string, error) {
				w.vanish()
				return "mark", nil
			}
		})
		w.open(10)
		check(t, w)
	})
}

// If the caller gives up too late, the compaction is marked in the log.
func TestTheCallerGivesUpBeforeTheMark(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := start(t, &model{answer: writes}, func(o *compaction.Options) {
		o.NewID = func() (string, error) {
			cancel()
			return "mark", nil
		}
	})
	w.open(10)
	out, err := w.Compact(ctx, request(reduce.Drop, 1000))
	if err != nil || out.Outcome != compaction.Compacted || out.Event == 0 {
		t.Errorf("%+v, %v", out, err)
	}
	if all := w.log(); all[len(all)-1].ID != "mark" {
		t.Errorf("the log ends with %+v", all[len(all)-1])
	}
}

// The log may grow between the decision and the mark.
func TestTheLogGrowsBeforeTheMark(t *testing.T) {
	var w *world
	w = start(t, &model{answer: writes}, func(o *compaction.Options) {
		o.NewID = func() (string, error) {
			w.turns(10, 11)
			return "mark", nil
		}
	})
	w.open(10)
	out := w.compact(request(reduce.Drop, 1000))
	if out.Outcome != compaction.Compacted || out.Event != out.Done.AsOf+3 || out.Event != out.Done.Projection.AsOf {
		t.Errorf("marked at %d, decided at %d, shown at %d", out.Event, out.Done.AsOf, out.Done.Projection.AsOf)
	}
}

// A summary or instructions are refused with a strategy that makes no summary.
func TestATextWithoutAPlace(t *testing.T) {
	w := start(t, &model{answer: writes})
	w.open(10)
	r := request(reduce.Mask, 0)
	r.Summary = "No module leaks so far."
	_, err := w.Compact(t.Context(), r)
	var invalid *eventlog.InvalidError
	if !errors.As(err, &invalid) || invalid.Field != "summary" {
		t.Errorf("%v", err)
	}
}

// The trigger of a compaction depends on its mode, unless the caller gives one.
func TestTriggerOfAMode(t *testing.T) {
	for mode, want := range map[string]eventlog.CompactionTrigger{
		lifecycle.ModeManual: eventlog.TriggerManual, lifecycle.ModeHost: eventlog.TriggerManual, lifecycle.ModeResumeDigest: eventlog.TriggerManual,
		lifecycle.ModeAuto: eventlog.TriggerThreshold, lifecycle.ModeWorkflow: eventlog.TriggerThreshold, lifecycle.ModeWorker: eventlog.TriggerThreshold,
	} {
		for given, want := range map[eventlog.CompactionTrigger]eventlog.CompactionTrigger{0: want, eventlog.TriggerBudgetPressure: eventlog.TriggerBudgetPressure} {
			w := start(t, &model{answer: writes})
			w.open(10)
			r := request(reduce.Drop, 1000)
			r.Mode, r.Trigger = mode, given
			out := w.compact(r)
			if out.Outcome != compaction.Compacted {
				t.Fatalf("%+v", out)
			}
			if body := w.log()[out.Event-1].Body.(*eventlog.Compaction); body.Trigger != want {
				t.Errorf("%s with trigger %d: by %d, want %d", mode, given, body.Trigger, want)
			}
		}
	}
}

// Runtimes learn whose instructions a summarizer gets.
func TestHooksSeeInstructions(t *testing.T) {
	own, policy := prompt.Instructions{Text: "Name the modules.", Mode: prompt.Replace}, prompt.Instructions{Text: "Be brief."}
	for name, c := range map[string]struct {
		own, policy prompt.Instructions
		want        lifecycle.Instructions
	}{
		"nobody's":      {},
		"the policy's":  {policy: policy, want: lifecycle.Instructions{Source: "policy", Mode: "extend"}},
		"the caller's":  {own: own, want: lifecycle.Instructions{Source: "request", Mode: "replace"}},
		"both, his own": {own: own, policy: policy, want: lifecycle.Instructions{Source: "request", Mode: "replace"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, &model{answer: writes})
			asked := w.serve(allow)
			w.open(10)
			r := request(reduce.Summarize, 1000)
			r.Instructions, r.Request.Policy.Summaries.Instructions = c.own, c.policy
			if out := w.compact(r); out.Outcome != compaction.Compacted {
				t.Fatalf("%+v", out)
			}
			for range 2 { // before and after it
				if got := <-asked.calls; got.Instructions != c.want {
					t.Errorf("%s says %+v, want %+v", got.Hook, got.Instructions, c.want)
				}
			}
		})
	}
}
