package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/lifecycle"
)

// ask runs a PreCompact among these runtimes, in a synctest bubble, and says how long it
// took.
func ask(t *testing.T, o lifecycle.HooksOptions, runtimes []*runtime, c lifecycle.Call) (v lifecycle.Verdict, took time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		hooks := lifecycle.NewHooks(o)
		var served sync.WaitGroup
		var all []*lifecycle.Subscriber
		for _, r := range runtimes {
			s := hooks.Subscribe(lifecycle.Subscription{PreCompact: true, Deadline: r.deadline})
			all = append(all, s)
			served.Go(func() { r.serve(t, s) })
		}
		began := time.Now()
		v, err = hooks.PreCompact(context.Background(), c)
		took = time.Since(began)
		for _, s := range all {
			s.Close()
		}
		served.Wait()
	})
	return v, took, err
}

// TestVerdicts: the first block wins, modifications apply in the order of
// subscription and later ones see them, who leaves blocks nothing and is waited
// for no longer than it is there, and nobody is waited for beyond its deadline.
func TestVerdicts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		onTimeout := rapid.SampledFrom([]lifecycle.Decision{"", lifecycle.Allow, lifecycle.Block}).Draw(rt, "on timeout")
		call := drawCall(rt)
		var runtimes []*runtime
		for i := range rapid.IntRange(0, 5).Draw(rt, "runtimes") {
			runtimes = append(runtimes, drawRuntime(rt, i))
		}
		want := expect(call, runtimes, onTimeout)
		got, took, err := ask(t, lifecycle.HooksOptions{OnTimeout: onTimeout}, runtimes, call)
		if err != nil {
			rt.Fatal(err)
		}
		if got != want.verdict {
			rt.Errorf("the verdict is %+v; want %+v", got, want.verdict)
		}
		if took != want.took {
			rt.Errorf("it took %s; want %s", took, want.took)
		}
		for i, r := range runtimes {
			switch terms := want.asked[i]; {
			case terms == nil && len(r.saw) > 0:
				rt.Errorf("runtime %d was called: %v", i, r.saw)
			case terms != nil && (len(r.saw) != 1 || r.saw[0].Terms != *terms || r.saw[0].Hook != lifecycle.PreCompact):
				rt.Errorf("runtime %d saw %+v; want the terms %+v", i, r.saw, *terms)
			}
		}
	})
}

func TestOutcomesOfHooksAreObserved(t *testing.T) {
	for does, want := range map[string]lifecycle.HookOutcome{
		"allow": lifecycle.HookAllowed, "modify": lifecycle.HookModified, "block": lifecycle.HookVetoed,
		"silent": lifecycle.HookTimedOut, "deaf": lifecycle.HookTimedOut, "leaves": lifecycle.HookGone,
	} {
		var got []lifecycle.HookOutcome
		options := lifecycle.HooksOptions{Observe: func(o lifecycle.HookOutcome) { got = append(got, o) }}
		r := &runtime{does: does, deadline: time.Second, reply: lifecycle.Reply{Decision: lifecycle.Decision(does)}}
		_, _, err := ask(t, options, []*runtime{r}, lifecycle.Call{SessionID: "s", Mode: lifecycle.ModeManual})
		if err != nil || !slices.Equal(got, []lifecycle.HookOutcome{want}) {
			t.Errorf("%s: %v, %v", does, got, err)
		}
	}
}

// TestADisconnectNeverBlocks: with nobody else about, a compaction goes on the
// moment its last runtime is gone, whatever a timeout would mean.
func TestADisconnectNeverBlocks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var runtimes []*runtime
		var last time.Duration
		for range rapid.IntRange(1, 6).Draw(rt, "runtimes") {
			r := &runtime{does: "hangs up", deadline: time.Minute, hangsUp: time.Duration(rapid.IntRange(0, 59).Draw(rt, "leaves")) * time.Second}
			runtimes = append(runtimes, r)
			last = max(last, r.hangsUp)
		}
		got, took, err := ask(t, lifecycle.HooksOptions{OnTimeout: lifecycle.Block}, runtimes, drawCall(rt))
		if err != nil || got.Decision != lifecycle.Allow || took != last {
			rt.Errorf("the verdict is %+v, %v, after %s; the last one left after %s", got, err, took, last)
		}
	})
}

// TestOnlySomeModesFire: the others are neither asked for nor reported.
func TestOnlySomeModesFire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for mode, fires := range map[string]bool{
			lifecycle.ModeManual: true, lifecycle.ModeHost: true, lifecycle.ModeAuto: true,
			lifecycle.ModeWorkflow: false, lifecycle.ModeWorker: false, lifecycle.ModeResumeDigest: false, "soup": false,
		} {
			hooks := lifecycle.NewHooks(lifecycle.HooksOptions{})
			s := hooks.Subscribe(lifecycle.Subscription{PreCompact: true, PostCompact: true})
			r := &runtime{does: "block", reply: lifecycle.Reply{Decision: lifecycle.Block, Reason: "no"}}
			go r.serve(t, s)
			got, err := hooks.PreCompact(t.Context(), lifecycle.Call{SessionID: "s", Mode: mode})
			if err != nil || (got.Decision == lifecycle.Block) != fires {
				t.Errorf("%s: the verdict is %+v, %v", mode, got, err)
			}
			hooks.PostCompact(lifecycle.Call{SessionID: "s", Mode: mode, Result: &lifecycle.Result{}})
			synctest.Wait()
			if fires != (len(r.saw) == 2) || !fires && len(r.saw) > 0 {
				t.Errorf("%s: the runtime saw %v", mode, r.saw)
			}
			s.Close()
		}
	})
}

// TestWhoIsCalled: by session and hook.
func TestWhoIsCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks := lifecycle.NewHooks(lifecycle.HooksOptions{})
		all := map[string]*runtime{}
		for name, want := range map[string]lifecycle.Subscription{
			"pre of s":   {Sessions: []string{"r", "s"}, PreCompact: true},
			"post of s":  {Sessions: []string{"s"}, PostCompact: true},
			"both of t":  {Sessions: []string{"t"}, PreCompact: true, PostCompact: true},
			"both of it": {PreCompact: true, PostCompact: true},
		} {
			s := hooks.Subscribe(want)
			t.Cleanup(s.Close)
			all[name] = &runtime{does: "allow"}
			go func(r *runtime) {
				for c := range s.Calls(t.Context()) {
					r.saw = append(r.saw, c)
					if c.Hook == lifecycle.PreCompact {
						if err := s.Reply(lifecycle.Reply{CallID: c.ID}); err != nil {
							t.Error(err)
						}
					}
				}
			}(all[name])
		}
		call := lifecycle.Call{SessionID: "s", Mode: lifecycle.ModeHost, Result: &lifecycle.Result{Summary: "it was so"}}
		if v, err := hooks.PreCompact(t.Context(), call); err != nil || v.Decision != lifecycle.Allow {
			t.Error(v, err)
		}
		hooks.PostCompact(call)
		synctest.Wait()
		for name, want := range map[string]string{
			"pre of s": "[pre_compact]", "post of s": "[post_compact it was so]", "both of t": "[]", "both of it": "[pre_compact post_compact it was so]",
		} {
			var words []string
			for _, c := range all[name].saw {
				words = append(words, string(c.Hook))
				if c.Result != nil {
					words = append(words, c.Result.Summary)
				}
			}
			if got := fmt.Sprint(words); got != want {
				t.Errorf("%s saw %s; want %s", name, got, want)
			}
		}
	})
}

// TestPreCompactEndsWithItsContext, while it asks and while it waits for another of
// the same session; other sessions wait for nobody.
func TestPreCompactEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks := lifecycle.NewHooks(lifecycle.HooksOptions{Deadline: time.Minute})
		s := hooks.Subscribe(lifecycle.Subscription{Sessions: []string{"s"}, PreCompact: true})
		defer s.Close()
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		const callers = 3
		errs := make(chan error, callers)
		for range callers {
			go func() {
				_, err := hooks.PreCompact(ctx, lifecycle.Call{SessionID: "s", Mode: lifecycle.ModeAuto})
				errs <- err
			}()
		}
		synctest.Wait()
		if v, err := hooks.PreCompact(ctx, lifecycle.Call{SessionID: "t", Mode: lifecycle.ModeAuto}); err != nil || v.Decision != lifecycle.Allow {
			t.Errorf("another session: %+v, %v", v, err)
		}
		cancel(cause)
		for range callers {
			if err := <-errs; !errors.Is(err, cause) {
				t.Errorf("error is %v", err)
			}
		}
		// Nothing of them is left in the way.
		go func() {
			for c := range s.Calls(t.Context()) {
				if err := s.Reply(lifecycle.Reply{CallID: c.ID, Decision: lifecycle.Block, Reason: "why not"}); err != nil {
					t.Error(err)
				}
			}
		}()
		v, err := hooks.PreCompact(t.Context(), lifecycle.Call{SessionID: "s", Mode: lifecycle.ModeAuto})
		if err != nil || v.Decision != lifecycle.Block || v.Reason != "why not" {
			t.Errorf("the next one: %+v, %v", v, err)
		}
	})
}

func TestHooksOptions(t *testing.T) {
	for name, o := range map[string]lifecycle.HooksOptions{
		"deadline": {Deadline: -1}, "on a timeout": {OnTimeout: lifecycle.Modify},
	} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), strings.Fields(name)[0]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (lifecycle.HooksOptions{OnTimeout: lifecycle.Block}).Validate(); err != nil {
		t.Error(err)
	}
}

// A subscriber that misses its deadline is overdue until it answers in time, or leaves.
func TestOverdueSubscribers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := lifecycle.NewHooks(lifecycle.HooksOptions{Deadline: time.Second})
		s := h.Subscribe(lifecycle.Subscription{PreCompact: true})
		ask := func() {
			t.Helper()
			if _, err := h.PreCompact(t.Context(), lifecycle.Call{SessionID: "s", Mode: lifecycle.ModeManual}); err != nil {
				t.Fatal(err)
			}
		}
		ask()
		if n := h.Overdue(); n != 1 {
			t.Errorf("%d are overdue after a missed deadline, want 1", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			for c := range s.Calls(ctx) {
				if err := s.Reply(lifecycle.Reply{CallID: c.ID}); err != nil && ctx.Err() == nil {
					continue // the one whose deadline has passed
				}
			}
		}()
		ask()
		if n := h.Overdue(); n != 0 {
			t.Errorf("%d are overdue after an answer, want 0", n)
		}
		cancel()
		<-answered
		ask()
		s.Close()
		if n := h.Overdue(); n != 0 {
			t.Errorf("%d are overdue after they left, want 0", n)
		}
	})
}
