package reduce_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

func (s *session) say(t *testing.T, lines string) {
	t.Helper()
	events, err := reducetest.ParseEvents(lines, int(s.conv.Head())+1)
	if err == nil {
		err = s.append(events...)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (s *session) decide(t *testing.T, d *eventlog.CompactionDecision) {
	t.Helper()
	if err := s.append(eventlog.Event{ID: "decision " + strings.Repeat("i", int(s.conv.Head())), Body: &eventlog.Compaction{Decision: d}}); err != nil {
		t.Fatal(err)
	}
}

// shows reports whether the group that begins at an event is shown to a reader who has
// decided nothing.
func (s *session) shows(t *testing.T, first eventlog.Seq) bool {
	t.Helper()
	got, err := reduce.NewPipeline(reducetest.Policy(), s.conv).Run(budget.Budget{Target: 100_000}, reduce.State{}, reduce.Ask{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(got.View.Groups(), func(g *reduce.Group) bool { return g.First == first })
}

const twoTurns = "assistant: @80 work\nassistant: @80 more work"

// What is at the front while no human has spoken is no part of what a compaction lets
// leave, and stays when a human takes its place there.
func TestWhatStandsOutlivesACompaction(t *testing.T) {
	s := newSession()
	s.say(t, "user (standing=AGENTS.md): Use tabs.\n"+twoTurns)
	if s.compact(t, reducetest.Policy(), budget.Budget{Target: 100_000}, reduce.Ask{Strategy: reduce.Drop, KeepLastTurns: 1}, "") == nil {
		t.Fatal("nothing was compacted")
	}
	s.say(t, "user: Fix the parser.")
	if !s.shows(t, 1) || s.shows(t, 2) {
		t.Errorf("what stands is shown: %v; what left: %v", s.shows(t, 1), s.shows(t, 2))
	}
}

// What a human says after a compaction stays, also as a late part of a dropped group,
// and beside a later compaction that keeps it.
func TestWhatIsSaidAfterACompactionStays(t *testing.T) {
	s := newSession()
	s.say(t, "user: Fix the parser.\nuser (group=g): Only view.go.\n"+twoTurns+"\nuser: Go on.")
	s.decide(t, &eventlog.CompactionDecision{Through: 4, DigestTokens: 10_000})
	if s.shows(t, 2) {
		t.Error("what left is shown")
	}
	s.say(t, "user (group=g): And use tabs.")
	if !s.shows(t, 2) {
		t.Error("the newest words of a human left by a compaction before them")
	}
	s.decide(t, &eventlog.CompactionDecision{Through: 5, DigestTokens: 10_000, Kept: []eventlog.Seq{2, 3}})
	if !s.shows(t, 2) || s.shows(t, 3) {
		t.Errorf("what was kept is shown: %v; what had left before: %v", s.shows(t, 2), s.shows(t, 3))
	}
}

// A result that came in the turns that a compaction spares stays, and one that comes after it is shown,
// with the call that the compaction dropped: no model has seen them. A later compaction drops both.
func TestLateResultsOutliveACompaction(t *testing.T) {
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			s := newSession()
			drop := func() bool {
				return s.compact(t, reducetest.Policy(), budget.Budget{Target: 100_000}, reduce.Ask{Strategy: reduce.Drop, KeepLastTurns: 1}, "") != nil
			}
			s.say(t, "user: Start the build.\nassistant: call slow build {}\n"+twoTurns)
			if when == "before" {
				s.say(t, "tool: slow @5 built")
			}
			if !drop() {
				t.Fatal("nothing was compacted")
			}
			if when == "after" {
				if s.shows(t, 2) {
					t.Error("a call without a result is shown after it was dropped")
				}
				s.say(t, "tool: slow @5 built")
			}
			if !s.shows(t, 2) || s.shows(t, 3) {
				t.Errorf("the call of a result that no model saw is shown: %v; what was dropped: %v", s.shows(t, 2), s.shows(t, 3))
			}
			if s.say(t, twoTurns); !drop() || s.shows(t, 2) {
				t.Error("a later compaction keeps the result")
			}
		})
	}
}

// A late result that came within the turns to keep stays at a cut, also where these are all turns and the log
// begins with one of them: it would be dropped, and come back at the next cut.
func TestALateResultStaysWhereAllTurnsAreToBeKept(t *testing.T) {
	s := newSession()
	long := strings.Repeat("word ", 1500)
	s.say(t, "assistant: call slow build {}\nuser: Start.\nassistant: "+long+"\ntool: slow @1 built\nassistant: "+long+"\nuser: Go on.")
	policy := reducetest.Policy()
	policy.Collapse.KeepLastTurns = 4
	r, err := s.reduce(t, policy, budget.Budget{Target: 2500}, reduce.Ask{})
	if err != nil || r.State.CollapsedThrough == 0 {
		t.Fatalf("nothing was cut: %v", err)
	}
	if !slices.ContainsFunc(r.View.Groups(), func(g *reduce.Group) bool { return g.First == 1 }) {
		t.Errorf("the late result was dropped: %+v", r.State)
	}
}

// Masks add up whatever each compaction lists.
func TestMasksAddUp(t *testing.T) {
	s := newSession()
	s.say(t, "user: Fix the parser.")
	for seq := range eventlog.Seq(3) {
		s.decide(t, &eventlog.CompactionDecision{Masked: []eventlog.Place{{Seq: seq + 1}}})
	}
	for seq := range eventlog.Seq(3) {
		if !s.conv.Decided().Masks(eventlog.Place{Seq: seq + 1}) {
			t.Errorf("the result at %d is shown again", seq+1)
		}
	}
}

// A caller's summary stays in the record of a later cut, beside one made in the background
// that covers as much: else the next run would quote the caller's again, and write the prefix
// again for it.
func TestACallersSummaryStays(t *testing.T) {
	s := newSession()
	s.say(t, "user: Fix the parser.\n"+strings.Repeat(twoTurns+"\n", 3))
	policy, b := reducetest.Policy(), budget.Budget{Target: 4_000}
	policy.Collapse.KeepLastTurns = 1
	c := s.compact(t, policy, b, reduce.Ask{Strategy: reduce.Summarize, KeepLastTurns: 1}, "The parser is half done")
	if c == nil {
		t.Fatal("nothing was compacted")
	}
	through := c.Decision.SummaryThrough
	s.summaries = append(s.summaries, reduce.Summary{ID: "made", Through: through, By: "a model", Text: "Work."})
	for range 40 {
		s.say(t, "assistant: @120 more work")
		before := s.state.CollapsedThrough
		got, err := s.reduce(t, policy, b, reduce.Ask{})
		if err != nil {
			t.Fatal(err)
		}
		digest, _ := got.View.Digest()
		if !strings.Contains(digest.Text, "The parser is half done") {
			t.Fatalf("the record through event %d, after one through %d, does not quote the caller's summary:\n%s", got.State.CollapsedThrough, before, digest.Text)
		}
	}
	if s.state.CollapsedThrough <= c.Decision.Through {
		t.Fatal("no cut was made after the compaction")
	}
}

// How far a caller's summary was shortened to fit stays as it is, whatever that is: the next run
// shows what this one showed.
func TestAShortenedSummaryStays(t *testing.T) {
	for lines := 1; lines < 60; lines += 4 {
		for words := 1; words < 130; words += 5 {
			by := strings.TrimSpace(strings.Repeat("line 42 ", words))
			s := newSession()
			s.say(t, "user: Fix the parser.\n"+strings.Repeat(twoTurns+"\n", 3)+"user: Go on.")
			c := &eventlog.Compaction{Summary: strings.Repeat("line 42\n", lines), Decision: &eventlog.CompactionDecision{
				Through: 6, DigestTokens: 54, SummaryID: "s", SummaryBy: by, SummaryThrough: 6,
			}}
			if err := s.append(eventlog.Event{ID: "decision", Body: c}); err != nil {
				t.Fatal(err)
			}
			s.say(t, "assistant: more")
			p, b := reduce.Policy{}, budget.Budget{Target: 300, Caps: map[budget.Tier]uint64{budget.TierSummary: 30}}
			got, err := reduce.NewPipeline(p, s.conv).Run(b, reduce.State{}, reduce.Ask{})
			if err != nil {
				continue // it does not fit
			}
			now, err := reduce.NewPipeline(p, s.conv).Current(b, got.State, reduce.Ask{})
			if err != nil || !sameView(now.View, got.View) {
				t.Fatalf("%d lines, %d words: %d tokens were shown, and then %d, at %d and %d (%v)", lines, words, got.View.Tokens(), now.View.Tokens(), got.State.SummaryTokens, now.State.SummaryTokens, err)
			}
		}
	}
}

// A record that is short, because a caller decided so or by a cap of the budget, is written no longer by a
// last resort, even where that takes less: the next run would show the short one again.
func TestADecidedRecordStaysShort(t *testing.T) {
	for name, c := range map[string]struct {
		decided uint64
		caps    map[budget.Tier]uint64
	}{
		"decided":          {decided: 1},
		"by a cap":         {70, map[budget.Tier]uint64{budget.TierSummary: 30}},
		"by a small cap":   {70, map[budget.Tier]uint64{budget.TierSummary: 5}},
		"by a small share": {decided: 1_000},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession()
			s.say(t, "user: Fix the parser.\nassistant: call c1 read {}\nassistant (pinned): Go on.")
			s.decide(t, &eventlog.CompactionDecision{Through: 3, DigestTokens: c.decided})
			p := reduce.Policy{Collapse: reduce.Collapse{LedgerShare: 0.1}}
			for target := uint64(300); target > 60; target-- {
				b := budget.Budget{Target: target, Caps: c.caps}
				got, err := s.pipeline(p, s.conv).Run(b, s.state, reduce.Ask{})
				if err != nil {
					continue
				}
				now, err := s.pipeline(p, s.conv).Current(b, got.State, reduce.Ask{})
				if err != nil || got.State.CollapsedFor > c.decided || now.State.CollapsedFor != got.State.CollapsedFor {
					t.Errorf("at a target of %d the record is one for %d tokens, and then for %d (%v)", target, got.State.CollapsedFor, now.State.CollapsedFor, err)
				}
			}
		})
	}
}

// A compaction that reserves most of the target keeps what humans said in the turns that it spares, although a
// cut under the same budget reached into these turns, and its record is for the whole target.
func TestSparedWordsOutliveALargeReserve(t *testing.T) {
	s := newSession()
	s.say(t, "user: Fix the parser.\nassistant: @300 work\nassistant: @300 more work\nuser: @30 said\nassistant: @5 work\nuser: Only view.go.\nassistant: @5 work\nassistant: @5 work")
	s.state = reduce.State{CollapsedThrough: 7, CollapsedFor: 3000, LateAfter: 7}
	ask := reduce.Ask{Strategy: reduce.Drop, Goal: 1, KeepLastTurns: 4, Reserved: 2250}
	if s.compact(t, reducetest.Policy(), budget.Budget{Target: 3000}, ask, "") == nil {
		t.Fatal("nothing was compacted")
	}
}
