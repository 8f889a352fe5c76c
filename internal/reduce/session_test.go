package reduce_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

var gauge = reducetest.Gauge

// session reduces a growing log as a daemon does, and holds every step against
// the invariants and against the step before.
type session struct {
	log   *record
	conv  *reduce.Conversation
	state reduce.State
	last  *step
	// summaries are those that a run may quote.
	summaries []reduce.Summary
	// roots are words that protect the results which hold one.
	roots []string
	// written is the digest of the last run that showed one, and of its policy.
	written   reduce.Written
	writtenBy reduce.Policy
	// rejected says that a run before made a context smaller because one was refused.
	rejected bool
}

// step is an assembly and the groups it was made from.
type step struct {
	groups []*reduce.Group
	before reduce.State
	result reduce.Result
	// bytes is what the view showed when it was made.
	bytes []string
	// decided is what callers had decided, and head the newest event.
	decided *reduce.Decided
	head    eventlog.Seq
}

func newSession() *session { return &session{log: newRecord(), conv: reduce.NewConversation(gauge)} }

func (s *session) append(events ...eventlog.Event) error {
	admitted, err := s.log.append(events...)
	for _, e := range admitted {
		s.conv.Append(e)
	}
	if s.last != nil && s.conv.VoidSince(s.last.head) > 0 {
		s.state, s.last = reduce.State{}, nil // what was decided meanwhile holds no more
	}
	return err
}

// pipeline is that of a conversation with the session's summaries and roots.
func (s *session) pipeline(p reduce.Policy, conv *reduce.Conversation) *reduce.Pipeline {
	out := reduce.NewPipeline(p, conv, s.summaries...)
	if len(s.roots) == 0 {
		return out
	}
	out.Protect(func(v reduce.View) map[eventlog.Place]bool {
		named := map[eventlog.Place]bool{}
		for _, g := range v.Groups() {
			for c := range g.Calls {
				if call := &g.Calls[c]; s.names(call) {
					named[call.Place()] = true
				}
			}
		}
		return named
	})
	return out
}

// names reports whether a root names the result of a call.
func (s *session) names(call *reduce.Call) bool {
	return !call.Interrupted && slices.ContainsFunc(s.roots, func(root string) bool { return strings.Contains(call.Body, root) })
}

// reduce runs the pipeline, checks everything and keeps the state.
func (s *session) reduce(t fataler, p reduce.Policy, b budget.Budget, ask reduce.Ask) (reduce.Result, error) {
	checkGroups(t, s.log, s.conv)
	got, err := s.pipeline(p, s.conv).Run(b, s.state, ask)
	again, errAgain := s.pipeline(p, s.fresh()).Run(b, s.state, ask)
	if err != nil {
		var over *reduce.OverBudgetError
		if !errors.As(err, &over) || errAgain == nil || err.Error() != errAgain.Error() {
			t.Fatalf("refused with %v, and by a fresh conversation with %v", err, errAgain)
		}
		checkRefusal(t, over, b)
		if !p.Whole && !p.Window.StrictAnchor {
			checkFirstIsSmall(t, over, s.conv)
		}
		return got, err
	}
	if errAgain != nil || !sameView(got.View, again.View) || !reflect.DeepEqual(got.State, again.State) || !reflect.DeepEqual(got.Steps, again.Steps) {
		t.Fatalf("a fresh conversation gives another view (%v):\n%v\n%v\n%s\n%s", errAgain, got.State, again.State, linesOf(reducetest.Show(got.View)), linesOf(reducetest.Show(again.View)))
	}
	if err := s.pipeline(p, s.conv).Agrees(b, s.state, ask); err != nil {
		t.Fatalf("%v", err)
	}
	s.checkWritten(t, p, b, ask, got)
	if got.View.Tokens()+ask.Reserved > b.Target {
		t.Fatalf("%d tokens and %d reserved exceed the target of %d", got.View.Tokens(), ask.Reserved, b.Target)
	}
	checkView(t, s.log, s.conv, got.View)
	checkHumans(t, s.log, reduce.NewPipeline(p, s.conv, s.summaries...), s.conv, under(b, ask), s.state, got)
	checkStanding(t, s.log, s.conv, got)
	checkForward(t, s.state, got.State)
	checkDecided(t, s.conv.Decided(), got.View)
	s.rejected = s.rejected || ask.Rejected > 0
	s.checkRejected(t, p, b, ask, got)
	if got.State.EvictedAsOf > s.conv.Head() || got.State.CollapsedThrough > s.conv.Head() {
		t.Fatalf("the state is ahead of event %d: %+v", s.conv.Head(), got.State)
	}
	for reducer, through := range got.State.Freed {
		if through > s.conv.Head() {
			t.Fatalf("%s is ahead of event %d: %+v", reducer, s.conv.Head(), got.State)
		}
	}
	checkSteps(t, reduce.NewPipeline(p, s.conv, s.summaries...).Resume(got.State), got)
	s.checkQuotation(t, got)
	s.checkProtected(t, p, got)
	now := step{slices.Clone(s.conv.Groups()), s.state, got, reducetest.Bytes(got.View), s.conv.Decided(), s.conv.Head()}
	if s.last != nil {
		s.checkSticky(t, *s.last, now, p.ToolResults.Strict)
	}
	s.state, s.last = got.State, &now
	return got, nil
}

// checkWritten checks that who has a digest that was written before sees what others see.
func (s *session) checkWritten(t fataler, p reduce.Policy, b budget.Budget, ask reduce.Ask, want reduce.Result) {
	if s.written.AsOf > 0 && reflect.DeepEqual(s.writtenBy, p) {
		pipeline := s.pipeline(p, s.fresh())
		pipeline.Offer(s.written)
		got, err := pipeline.Run(b, s.state, ask)
		if err != nil || !sameView(got.View, want.View) || !reflect.DeepEqual(got.State, want.State) || !reflect.DeepEqual(got.Steps, want.Steps) {
			t.Fatalf("with the digest that was written at event %d the view is another (%v):\n%s\n%s", s.written.AsOf, err, linesOf(reducetest.Show(got.View)), linesOf(reducetest.Show(want.View)))
		}
	}
	if w, ok := s.conv.Written(want.View); ok {
		s.written, s.writtenBy = w, p
	}
}

// under is the part of a budget that is the view's.
func under(b budget.Budget, ask reduce.Ask) budget.Budget {
	if ask.Rejected > 0 {
		b.Target = min(b.Target, max(500, ask.Rejected*4/5, ask.Reserved+64))
	}
	b.Target -= ask.Reserved
	return b
}

// checkRejected checks that what follows a context that was refused is a good deal smaller, or as
// small as can be, and says so.
func (s *session) checkRejected(t fataler, p reduce.Policy, b budget.Budget, ask reduce.Ask, got reduce.Result) {
	if ask.Rejected == 0 || p.Whole {
		return
	}
	used := got.View.Tokens() + ask.Reserved
	if smaller := used <= max(500, ask.Rejected*4/5, ask.Reserved+64); smaller == strings.Contains(got.Steps[0].Note, "nothing makes it smaller") {
		t.Fatalf("a context of %d tokens was refused; the next has %d: %s", ask.Rejected, used, got.Steps[0].Note)
	} else if smaller {
		return
	}
	again, err := s.pipeline(p, s.fresh()).Run(b, got.State, ask)
	if err != nil || again.View.Tokens() < got.View.Tokens() {
		t.Fatalf("%d tokens are said to be the least, and %d are possible (%v)", got.View.Tokens(), again.View.Tokens(), err)
	}
}

// checkDecided checks that nothing is shown that a caller's compaction removed.
func checkDecided(t fataler, d *reduce.Decided, v reduce.View) {
	for i := range v.Len() {
		g := v.Group(i)
		if d.Drops(g) {
			t.Fatalf("the group at %d is shown though compaction %d let it leave", g.First, d.Seq)
		}
		for c := range g.Calls {
			call := &g.Calls[c]
			at := call.Place()
			edit, ok := v.Edit(i, call.Result, 0)
			if d.Masks(at) && !g.Pinned && !call.Interrupted && (!ok || edit.Kind != reduce.Stubbed) && g.Messages[call.Result].Blocks[0].Tokens > 60 {
				t.Fatalf("the result at %v is shown (%+v) though compaction %d masked it", at, edit, d.Seq)
			}
		}
	}
}

// fresh is the conversation of someone who reads the log for the first time.
func (s *session) fresh() *reduce.Conversation {
	conv := reduce.NewConversation(gauge)
	for _, e := range s.log.events {
		conv.Append(e)
	}
	return conv
}

func sameView(a, b reduce.View) bool {
	x, y := reducetest.Show(a), reducetest.Show(b)
	return slices.EqualFunc(x, y, func(p, q reducetest.Shown) bool {
		return p.Bytes() == q.Bytes() && reflect.DeepEqual(p.Seqs, q.Seqs) && reflect.DeepEqual(p.Edits, q.Edits)
	})
}

// checkRefusal checks that a refusal names parts that are indeed too large.
func checkRefusal(t fataler, e *reduce.OverBudgetError, b budget.Budget) {
	var sum uint64
	for i, p := range e.Parts {
		sum += p.Tokens
		if p.What == "" || i > 0 && p.Tokens > e.Parts[i-1].Tokens {
			t.Fatalf("parts without a name or not in order: %+v", e.Parts)
		}
	}
	if e.Target != b.Target || len(e.Parts) == 0 || sum != e.Needed || sum <= e.Target {
		t.Fatalf("refused a target of %d with parts of %d tokens: %v", b.Target, sum, e)
	}
}

// checkFirstIsSmall checks that nothing is refused for what a user said first, unless that is pinned: it takes
// no more of a context than would let it be clipped again, or its parts are of the smallest size.
func checkFirstIsSmall(t fataler, e *reduce.OverBudgetError, conv *reduce.Conversation) {
	const smallest = 80 // of one part, with what is put around it
	for _, part := range e.Parts {
		for _, g := range conv.Groups() {
			if part.What != "first user message" || g.First != part.Seq || g.Pinned || g.Kind != reduce.KindUser {
				continue
			}
			parts := 0
			for _, m := range g.Messages {
				parts += len(m.Blocks)
			}
			if part.Tokens > max(e.Target/3*2, uint64(smallest*parts)) {
				t.Fatalf("refused for the first user message: %v", e)
			}
		}
	}
}

// checkSteps checks that the steps lead from the resumed view to the result.
func checkSteps(t fataler, resumed reduce.View, r reduce.Result) {
	names := []string{"duplicates", "tool_results", "clipping", "thinking", "dialogue_window"}
	at := resumed.Tokens()
	for i, s := range r.Steps {
		if s.Reducer != names[i] || s.TokensBefore != at || s.TokensAfter > at || s.Note == "" {
			t.Fatalf("step %d starts at %d tokens: %+v", i, at, s)
		}
		at = s.TokensAfter
	}
	if at != r.View.Tokens() || len(r.Steps) != len(names) {
		t.Fatalf("%d steps end at %d tokens, the view has %d", len(r.Steps), at, r.View.Tokens())
	}
}

// checkForward checks that decisions only move forward.
func checkForward(t fataler, before, after reduce.State) {
	if after.EvictedAsOf < before.EvictedAsOf || after.EvictedTurn < before.EvictedTurn ||
		after.CollapsedThrough < before.CollapsedThrough || after.LateAfter < before.LateAfter ||
		before.ClipTokens > 0 && after.ClipTokens != before.ClipTokens ||
		before.AnchorTokens > 0 && (after.AnchorTokens == 0 || after.AnchorTokens > before.AnchorTokens) ||
		before.SystemTextTokens > 0 && (after.SystemTextTokens == 0 || after.SystemTextTokens > before.SystemTextTokens) {
		t.Fatalf("the state moved back from %+v to %+v", before, after)
	}
	for reducer := range before.Freed {
		if after.Through(reducer) < before.Through(reducer) {
			t.Fatalf("%s moved back from %+v to %+v", reducer, before, after)
		}
	}
	if n := len(before.MediaClips); len(after.MediaClips) < n || !slices.Equal(after.MediaClips[:n], before.MediaClips) {
		t.Fatalf("the limits of media moved back from %+v to %+v", before.MediaClips, after.MediaClips)
	}
	if n := len(before.Clips); len(after.Clips) < n || !slices.Equal(after.Clips[:n], before.Clips) {
		t.Fatalf("the clips moved back from %+v to %+v", before.Clips, after.Clips)
	}
}

// checkSticky checks what one step may change of what the step before showed. Under strict
// retention the log and the roots alone decide.
func (s *session) checkSticky(t fataler, before, now step, strict bool) {
	old, fresh := reducetest.Show(before.result.View), reducetest.Show(now.result.View)
	if !slices.Equal(before.bytes, reducetest.Bytes(before.result.View)) {
		t.Fatalf("a view changed after it was made")
	}
	first, digest := logChanges(before, now)
	// A late event can make the collapsed run smaller than its digest, and larger again.
	was, _ := before.result.View.Digest()
	there, _ := now.result.View.Digest()
	turned := digest && was.Through != there.Through
	if !strict && sameDecisions(before.result.State, now.result.State) && !turned && before.decided == now.decided {
		for i, m := range old {
			if m.Group == nil && digest || m.Group != nil && m.Group.First >= first {
				break
			}
			if i >= len(fresh) || m.Bytes() != fresh[i].Bytes() {
				t.Fatalf("nothing was decided, and message %d changed: %+v\nfrom\n%s\nto\n%s", i, now.result.State, linesOf(old), linesOf(fresh))
			}
		}
	}
	at := map[*reduce.Group]int{}
	for i := range now.result.View.Len() {
		at[now.result.View.Group(i)] = i
	}
	cut := now.result.State.CollapsedThrough > before.result.State.CollapsedThrough
	had := map[*reduce.Group]bool{}
	for i := range before.result.View.Len() {
		g := before.result.View.Group(i)
		had[g] = true
		if j, ok := at[g]; ok {
			checkEditsStay(t, g, slices.DeleteFunc(slices.Clone(before.result.View.Edits(i)), func(e reduce.Edit) bool {
				if e.Reducer == "duplicates" && cut {
					return true // where a root keeps a group longer than the later copy, it shows its own
				}
				return strict && slices.ContainsFunc(g.Calls, func(c reduce.Call) bool { return c.Result == e.Message && s.names(&c) })
			}), now.result.View, j)
		}
	}
	if s.rejected && before.result.State.CollapsedFor < now.result.State.CollapsedFor {
		return // what had no room beside the digest of a smaller context has it again
	}
	for _, g := range before.groups {
		// So can a caller's compaction, whose summary is in the record of every run.
		if _, here := at[g]; here && !had[g] && !digest && before.decided == now.decided && g.Kind == reduce.KindTurn {
			t.Fatalf("the group at %d left the view and came back: %+v\nfrom\n%s\nto %+v\n%s", g.First, before.result.State, linesOf(old), now.result.State, linesOf(fresh))
		}
	}
}

// sameDecisions compares what two states decide: when a question was last asked is no
// decision.
func sameDecisions(a, b reduce.State) bool {
	a.AskedAsOf, b.AskedAsOf = 0, 0
	return reflect.DeepEqual(a, b)
}

// logChanges says what late events changed of what was there: the first event of
// the first group that they joined, and whether the digest has to change for them.
func logChanges(before, now step) (first eventlog.Seq, digest bool) {
	first = math.MaxUint64
	for i, g := range before.groups {
		if now.groups[i] != g {
			first = min(first, g.First)
			// It is about the group, or comes after the anchor that the group became.
			digest = digest || g.First <= before.result.State.CollapsedThrough || now.groups[i].Anchor != g.Anchor
		}
	}
	return first, digest
}

// checkEditsStay checks that what was stubbed or left out stays so, and that a cut
// body is not whole again.
func checkEditsStay(t fataler, g *reduce.Group, edits []reduce.Edit, v reduce.View, at int) {
	for _, e := range edits {
		next, ok := v.Edit(at, e.Message, e.Block)
		if !ok || e.Kind != reduce.Clipped && next.Kind != e.Kind {
			t.Fatalf("the group at %d (anchor %v) had %+v and now has %+v", g.First, g.Anchor, e, next)
		}
	}
}

func linesOf(all []reducetest.Shown) string {
	var out strings.Builder
	for _, m := range all {
		fmt.Fprintln(&out, m.Line(gauge))
	}
	return out.String()
}
