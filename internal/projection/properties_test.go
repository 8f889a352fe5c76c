package projection_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// grow shows an agent's conversation of any shape as it grows. session.request checks what must hold of any
// policy; check is called with each request and the one before it.
func grow(t *rapid.T, o projection.Options, check func(s *session, before *request, now request)) {
	policy, err := projection.New(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	s, b := newSession(), genTarget().Draw(t, "budget")
	for range rapid.IntRange(1, 60).Draw(t, "events") {
		if err := s.append(genEvent(t, s.head)); err != nil {
			t.Fatalf("the generator drew what the log refuses: %v", err)
		}
		if rapid.IntRange(0, 2).Draw(t, "assembles") > 0 {
			continue
		}
		before := s.last
		now, err := s.request(t, o, policy, b)
		var over *reduce.OverBudgetError
		switch {
		case errors.As(err, &over):
		case err != nil:
			t.Fatalf("%v", err)
		default:
			check(s, before, now)
		}
	}
}

// genCleaning draws options of a policy that cleans up.
func genCleaning(t *rapid.T, name string) projection.Options {
	return projection.Options{
		Name: name, KeepLast: rapid.Uint32Range(0, 3).Draw(t, "keep"), IgnoreSignatures: rapid.Bool().Draw(t, "ignores"),
	}
}

func TestRawShowsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grow(t, projection.Options{}, func(_ *session, _ *request, now request) {
			if !reflect.DeepEqual(now.view, now.applied.View) {
				t.Fatalf("raw changed a view")
			}
		})
	})
}

func TestCleanToolRepair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := genCleaning(t, projection.CleanToolRepair)
		grow(t, o, func(s *session, before *request, now request) {
			checkRepairs(t, o, now)
			checkStaysHidden(t, before, now)
		})
	})
}

// checkRepairs goes through all pairs of calls: what is hidden was repaired, and what was repaired is
// hidden if that saves tokens.
func checkRepairs(t fataler, o projection.Options, r request) {
	v := r.applied.View
	repaired := func(c *reduce.Call) bool {
		for _, later := range r.groups {
			for j := range later.Calls {
				d := &later.Calls[j]
				// The file is at the end of the arguments that are drawn.
				file := func(c *reduce.Call) string { _, file, _ := strings.Cut(c.Arguments, "path"); return file }
				if d.Name == c.Name && file(d) == file(c) && !d.Interrupted && !projection.Failed(d) && later.First > c.Seq {
					return true
				}
			}
		}
		return false
	}
	for i := range v.Len() {
		g := v.Group(i)
		left := v.Dropped(i) != nil
		for j := range g.Calls {
			c := &g.Calls[j]
			edit, edited := v.Edit(i, c.Result, 0)
			hidden := left || edited && edit.Kind == reduce.Redacted
			due := projection.Failed(c) && repaired(c)
			if hidden && !due {
				t.Fatalf("call %s at %d is hidden, and was not repaired", c.ID, g.First)
			}
			if due && !hidden && mayChange(r.view, i) && !v.Spared(i) && i < v.Len()-keptLast(o) && g.Messages[c.Result].Blocks[0].Tokens > 40 && !edited {
				t.Fatalf("call %s at %d was repaired, and is shown", c.ID, g.First)
			}
		}
	}
}

func TestSquashFailedCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := genCleaning(t, projection.SquashFailed)
		grow(t, o, func(_ *session, before *request, now request) {
			v := now.applied.View
			for i := range v.Len() {
				if !reflect.DeepEqual(v.Edits(i), now.view.Edits(i)) && v.Dropped(i) == nil {
					t.Fatalf("the group at %d was changed, and did not leave", v.Group(i).First)
				}
				if v.Dropped(i) == nil {
					continue
				}
				for j := range v.Group(i).Calls {
					if !projection.Failed(&v.Group(i).Calls[j]) {
						t.Fatalf("the group at %d left with a call that did not fail", v.Group(i).First)
					}
				}
			}
			checkStaysHidden(t, before, now)
		})
	})
}

// checkStaysHidden checks that what was hidden stays hidden, unless a late event changed the group.
func checkStaysHidden(t fataler, before *request, now request) {
	if before == nil {
		return
	}
	at := map[*reduce.Group]int{}
	for i := range now.applied.View.Len() {
		at[now.applied.View.Group(i)] = i
	}
	for i := range before.applied.View.Len() {
		g := before.applied.View.Group(i)
		j, there := at[g]
		if !there {
			continue
		}
		if before.applied.View.Dropped(i) != nil && now.applied.View.Dropped(j) == nil {
			t.Fatalf("the group at %d left and came back", g.First)
		}
		if now.applied.View.Dropped(j) != nil {
			continue
		}
		for _, e := range before.applied.View.Edits(i) {
			if n, ok := now.applied.View.Edit(j, e.Message, e.Block); e.Kind == reduce.Redacted && (!ok || n != e) {
				t.Fatalf("the group at %d had %+v and now has %+v", g.First, e, n)
			}
		}
	}
}

func TestSummaryPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := genCleaning(t, projection.SummaryPrefix)
		o.Summary = prose(2000).Draw(t, "summary")
		grow(t, o, func(s *session, before *request, now request) {
			d, _ := now.applied.View.Digest()
			old, _ := now.view.Digest()
			for _, section := range old.Sections() {
				if !strings.Contains(d.Text, section.Text) {
					t.Fatalf("the digest no longer says %q:\n%s", section.Text, d.Text)
				}
			}
			if now.applied.Step.Touched > 0 && !strings.Contains(d.Text, "by the caller:\n> "+strings.TrimSpace(o.Summary)[:1]) {
				t.Fatalf("the summary does not stand in\n%s", d.Text)
			}
			if now.applied.Step.Touched == 0 && now.applied.Reason == "" {
				t.Fatalf("nothing was done, for no reason")
			}
			checkStaysAway(t, before, now)
		})
	})
}

// checkStaysAway checks that dropped groups stay dropped, unless late events changed them or the reduction
// has decided again.
func checkStaysAway(t fataler, before *request, now request) {
	if before == nil || len(before.groups) == 0 || !reflect.DeepEqual(before.reduced, now.reduced) {
		return
	}
	for i, g := range before.groups {
		if now.groups[i] != g {
			return
		}
	}
	here := map[*reduce.Group]bool{}
	for _, g := range before.applied.View.Groups() {
		here[g] = true
	}
	for _, g := range now.applied.View.Groups() {
		if !here[g] && g.First <= before.groups[len(before.groups)-1].First {
			t.Fatalf("the group at %d left and came back: %s\n%s", g.First, linesOf(before.applied.View), linesOf(now.applied.View))
		}
	}
}

// TestPoliciesSpareWhatIsProtected: no policy changes what a rule protects; only the last resort of the
// reduction does.
func TestPoliciesSpareWhatIsProtected(t *testing.T) {
	reduction := reducetest.Policy()
	reduction.ToolResults.ByTool = map[string]reduce.Retention{"read": {Never: true}}
	rapid.Check(t, func(t *rapid.T) {
		o := rapid.SampledFrom([]projection.Options{
			{Name: projection.CleanToolRepair}, {Name: projection.SquashFailed}, {Name: projection.SummaryPrefix, Summary: "s"},
			{Name: projection.CustomExpression, Expression: `size(tools) % 2 == 0 ? "drop" : "stub"`},
			{Name: projection.ReachabilityGC, MinChars: new(uint32), RootWindow: new(uint32), ClearAtLeastTokens: new(uint32)},
		}).Draw(t, "options")
		o.KeepLast, o.IgnoreSignatures = 1, rapid.Bool().Draw(t, "ignores")
		policy, err := projection.New(o)
		if err != nil {
			t.Fatalf("%v", err)
		}
		s, b := newSession(), genTarget().Draw(t, "budget")
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			if err := s.append(genEvent(t, s.head)); err != nil {
				t.Fatalf("the generator drew what the log refuses: %v", err)
			}
			got, err := reduce.NewPipeline(reduction, s.conv).Run(b, s.reduced, reduce.Ask{})
			if b.Target == 0 || err != nil {
				continue
			}
			applied := policy.Apply(got.View, s.conv.Turns(), s.shown)
			s.reduced, s.shown = got.State, applied.State
			checkSpares(t, s.conv, applied.View, got.State.Released)
		}
	})
}

func checkSpares(t fataler, conv *reduce.Conversation, v reduce.View, released eventlog.Seq) {
	full := map[eventlog.Place]bool{}
	for i := range v.Len() {
		for _, call := range v.Group(i).Calls {
			_, edited := v.Edit(i, call.Result, 0)
			full[call.Place()] = !edited && v.Dropped(i) == nil
		}
	}
	for _, g := range conv.Groups() {
		for _, call := range g.Calls {
			if call.Name == "read" && !call.Interrupted && call.Seq > released && !full[call.Place()] {
				t.Fatalf("the result at %d is protected and is not in full:\n%s", call.Seq, linesOf(v))
			}
		}
	}
}
