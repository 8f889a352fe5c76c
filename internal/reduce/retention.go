package reduce

import (
	"cmp"
	"fmt"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/quote"
)

// retention stubs old tool results: those that the policy's rules by age evicted at the last batch and, if tokens
// must be freed, every result from the oldest on.
type retention struct {
	policy ToolResults
	rules  *rules
	texts  writer
	// head and turns are the log's.
	head  eventlog.Seq
	turns uint32
	// digests has what callers decided.
	digests *digestWriter
	// ended returns why the reduction should stop; nil if it should go on.
	ended func() error
}

func (retention) Name() string { return "tool_results" }

func (r retention) Reduce(v View, s State) (View, Step) {
	e := v.Editor()
	if r.policy.Strict {
		s.EvictedAsOf, s.EvictedTurn = r.head, r.turns
	}
	left := r.stubByAge(e, s)
	r.stubThrough(e, s)
	stubbed := e.Touched() // none is of an event that comes later; those that a caller decides on may be
	r.stubDecided(e)
	note := fmt.Sprintf("stubbed %d results by age as of event %d and under pressure through event %d; spared %d errors, %d of tools that are never evicted, %d too small",
		stubbed, s.EvictedAsOf, s.Through(r.Name()), left.errors, left.never, left.small)
	if left.rooted > 0 {
		note += fmt.Sprintf(", %d that a root names", left.rooted)
	}
	return e.View(), Step{Touched: e.Touched(), Note: note}
}

// sparedResults counts results that were old enough but stayed, by reason.
type sparedResults struct{ errors, never, small, rooted int }

// stubByAge stubs the results that the rules by age evicted at the last batch. It goes from the newest group to the
// oldest, because a rule may keep the last few results of a tool.
func (r retention) stubByAge(e *Editor, s State) sparedResults {
	var left sparedResults
	if s.EvictedAsOf == 0 {
		return left
	}
	age := ages{retention: r, state: s, seen: map[string]uint32{}, reasons: map[uint32]string{}}
	type oldResult struct {
		call   *Call
		reason string
	}
	var old []oldResult
	log, outlasted := len(r.digests.groups), e.v.protection != nil || r.digests.conv.lateFor(s) > 0
	for i := e.v.Len() - 1; i >= 0 && r.ended() == nil; i-- {
		g := e.v.Group(i)
		for log--; outlasted && r.digests.groups[log] != g; log-- { // dropped groups, which g outlasts, count too
			age.countAll(r.digests.groups[log])
		}
		if g.First > s.EvictedAsOf {
			continue
		}
		old = old[:0]
		for c := len(g.Calls) - 1; c >= 0; c-- {
			call := &g.Calls[c]
			rule, counts := age.count(call)
			if counts && (age.tooOld(call, rule) || age.tooMany(g, call, rule)) && !r.spares(e.v, g, call, rule, false, &left) {
				old = append(old, oldResult{call, age.reason(call, rule)})
			}
		}
		for _, o := range slices.Backward(old) { // an editor is fastest when it gets a group's results in order
			e.replace(i, o.call, Stubbed, r.texts.stub(o.call, r.policy.OutlineTokens), r.Name(), o.reason)
		}
	}
	return left
}

// ages applies the rules by age to results, newest first.
type ages struct {
	retention
	state   State
	seen    map[string]uint32 // results of each tool
	reasons map[uint32]string // by turns
}

// count counts the result of a call for the rules, and returns the rule of its tool. counts is false if there is no
// result, or if it came after the last batch.
func (a *ages) count(call *Call) (rule decidedRule, counts bool) {
	if call.Interrupted || call.Seq > a.state.EvictedAsOf {
		return rule, false
	}
	if rule = a.rules.rule(call.Name, a.ended); rule.Last > 0 {
		a.seen[call.Name]++
	}
	return rule, true
}

func (a *ages) countAll(g *Group) {
	for c := range g.Calls {
		a.count(&g.Calls[c])
	}
}

func (a *ages) tooOld(call *Call, rule decidedRule) bool {
	return rule.Turns > 0 && a.state.EvictedTurn-call.Turn >= rule.Turns
}

// tooMany reports whether the tool has at least as many newer results as its rule keeps. It is false for a group that
// may outlast those newer results.
func (a *ages) tooMany(g *Group, call *Call, rule decidedRule) bool {
	return rule.Last > 0 && a.seen[call.Name] > rule.Last && !g.outlasts()
}

// reason says by which rule a result is stubbed.
func (a *ages) reason(call *Call, rule decidedRule) string {
	if !a.tooOld(call, rule) {
		return fmt.Sprintf("not among the last %d results of %s", rule.Last, quote.Name(call.Name))
	}
	reason, ok := a.reasons[rule.Turns]
	if !ok {
		reason = fmt.Sprintf("older than %d turns", rule.Turns)
		a.reasons[rule.Turns] = reason
	}
	return reason
}

// spares reports whether a result stays whatever its age, and counts the reason in left. With anySize it ignores the
// policy's minimum size.
func (r retention) spares(v View, g *Group, call *Call, rule decidedRule, anySize bool, left *sparedResults) bool {
	switch {
	case rule.Never && (!rule.named || v.protects(call)): // the last resort may have released a named tool's result
		left.never++
	case v.protects(call):
		left.rooted++
	case call.IsError && !r.policy.EvictErrors:
		left.errors++
	case g.Messages[call.Result].Tokens < rule.MinTokens && !anySize:
		left.small++
	default:
		return false
	}
	return true
}

func (r retention) stubThrough(e *Editor, s State) {
	through := s.Through(r.Name())
	for i := range e.v.Len() {
		if e.v.Group(i).First > through || r.ended() != nil {
			return
		}
		r.stubGroup(e, i, through, false)
	}
}

// stubDecided stubs the results that callers masked, even those that the policy would keep.
func (r retention) stubDecided(e *Editor) {
	decided := r.digests.decided
	if decided == nil || len(decided.masked) == 0 {
		return
	}
	const reason = "a compaction masked it"
	for i := range e.v.Len() {
		g := e.v.Group(i)
		if g.First > decided.maskedThrough || r.ended() != nil {
			return
		}
		for c := range g.Calls {
			call := &g.Calls[c]
			if call.Interrupted || !decided.Masks(call.Place()) {
				continue
			}
			if !e.decided(i, call, r.texts.stub(call, r.policy.OutlineTokens), r.Name(), reason) && !edited(e.v, i, call) {
				e.decided(i, call, r.texts.stub(call, 0), r.Name(), reason)
			}
		}
	}
}

// heldTokens returns the size of the results that a view shows in full and that may not be evicted.
func (r retention) heldTokens(v View) uint64 {
	var sum uint64
	for i := range v.items {
		g := v.items[i].group
		for c := range g.Calls {
			call := &g.Calls[c]
			if v.items[i].dropped == nil && !call.Interrupted && !edited(v, i, call) &&
				(g.Pinned || v.protects(call) || r.rules.rule(call.Name, r.ended).Never) {
				sum += g.Messages[call.Result].Tokens
			}
		}
	}
	return sum
}

// edited reports whether a result of group i is replaced, in full or in part.
func edited(v View, i int, call *Call) bool {
	_, ok := v.Edit(i, call.Result, 0)
	return ok
}

// stubGroup stubs the results of group i up to event through.
func (r retention) stubGroup(e *Editor, i int, through eventlog.Seq, anySize bool) {
	g := e.v.Group(i)
	for c := range g.Calls {
		if call := &g.Calls[c]; !call.Interrupted && call.Seq <= through {
			r.stub(e, i, call, anySize)
		}
	}
}

// stub stubs a result of group i, unless the policy spares it.
func (r retention) stub(e *Editor, i int, call *Call, anySize bool) {
	var left sparedResults
	if !r.spares(e.v, e.v.Group(i), call, r.rules.rule(call.Name, r.ended), anySize, &left) {
		e.replace(i, call, Stubbed, r.texts.stub(call, r.policy.OutlineTokens), r.Name(), "the budget was exceeded")
	}
}

// Free implements freer.
func (r retention) Free(v View, s State, d demand) State {
	e := v.Editor()
	if after := r.stubOldest(e, s, d); e.Touched() > 0 || s.Through(r.Name()) > 0 {
		return after // else nothing was ever freed, and the watermark does not move
	}
	return s
}

// stubOldest moves the watermark State.Through forward, group by group, until enough is freed. A late result has the
// age of the groups around it in the log, not of the group of its call: it is stubbed when the watermark reaches it.
func (r retention) stubOldest(e *Editor, s State, d demand) State {
	before, reached := e.Tokens(), s.Through(r.Name())
	var late []lateResults
	for i := range e.v.Len() {
		if r.ended() != nil || before-e.Tokens() >= d.Tokens || e.v.lastTurn()-e.v.Group(i).Turn < d.KeepTurns {
			break
		}
		through := e.v.lastBefore(i + 1)
		if through <= reached {
			continue
		}
		reached = through
		r.stubGroup(e, i, through, d.AnySize)
		if e.v.Group(i).Last > through {
			late = append(late, lateResults{i, e.v.Group(i).callsAfter(through)})
		}
		late = slices.DeleteFunc(late, func(l lateResults) bool { return len(l.calls) == 0 })
		for n := range late {
			for l := &late[n]; len(l.calls) > 0 && l.calls[0].Seq <= through; l.calls = l.calls[1:] {
				r.stub(e, l.group, l.calls[0], d.AnySize)
			}
		}
	}
	return s.freed(r.Name(), reached)
}

// lateResults are the results of a group that are still after the watermark, oldest first.
type lateResults struct {
	group int
	calls []*Call
}

// callsAfter returns the calls whose results come after an event, in the order of the results.
func (g *Group) callsAfter(through eventlog.Seq) []*Call {
	var late []*Call
	for c := range g.Calls {
		if call := &g.Calls[c]; !call.Interrupted && call.Seq > through {
			late = append(late, call)
		}
	}
	slices.SortStableFunc(late, func(a, b *Call) int { return cmp.Compare(a.Seq, b.Seq) })
	return late
}
