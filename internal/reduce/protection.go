package reduce

import (
	"fmt"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// protection says which results are protected: no reducer and no projection policy may evict them, except the last
// resort. These are the results of tools that the policy names as never evicted, and those that were shown in full
// when a root named them. Their groups are not dropped. Nil protects nothing.
type protection struct {
	rules    *rules
	places   []eventlog.Place
	rooted   map[eventlog.Place]bool // places
	released eventlog.Seq
	ended    func() error
}

// protection returns what is protected under a state; nil if nothing is.
func (r retention) protection(s State) *protection {
	if !r.rules.never && len(s.Rooted) == 0 {
		return nil
	}
	p := &protection{rules: r.rules, places: s.Rooted, rooted: make(map[eventlog.Place]bool, len(s.Rooted)), released: s.Released, ended: r.ended}
	for _, at := range s.Rooted {
		p.rooted[at] = true
	}
	return p
}

// why says what protects a result, even one that the last resort has released; empty if nothing does.
func (p *protection) why(call *Call) string {
	switch {
	case p == nil || call.Interrupted:
		return ""
	case p.rooted[call.Place()]:
		return "named by a root"
	case p.never(call):
		return "never_evict"
	default:
		return ""
	}
}

// never reports whether the policy names a result's tool as never evicted.
func (p *protection) never(call *Call) bool {
	if p == nil || !p.rules.never {
		return false
	}
	rule := p.rules.rule(call.Name, p.ended)
	return rule.Never && rule.named
}

func (p *protection) holds(call *Call) bool {
	return p != nil && call.Seq > p.released && p.why(call) != ""
}

// in reports whether a group has a protected result.
func (p *protection) in(g *Group) bool {
	if p == nil {
		return false
	}
	for c := range g.Calls {
		if p.holds(&g.Calls[c]) {
			return true
		}
	}
	return false
}

// protectionKey identifies a protection.
type protectionKey struct {
	rules    *rules
	rooted   string
	released eventlog.Seq
}

func (p *protection) key() protectionKey {
	if p == nil {
		return protectionKey{}
	}
	return protectionKey{p.rules, fmt.Sprint(p.places), p.released}
}

// reason adds to the reason of an edit what protected the result until the last resort.
func (p *protection) reason(call *Call, reason string) string {
	if why := p.why(call); why != "" {
		return fmt.Sprintf("%s; %s, but the last resort took it", reason, why)
	}
	return reason
}

// outlasts reports whether a group may stay when groups after it are dropped.
func (p *protection) outlasts(g *Group) bool {
	return g.outlasts() || g.late > 0 || p != nil && p.rules.never && slices.ContainsFunc(g.Calls, func(c Call) bool { return p.never(&c) })
}

// protects reports whether a result is protected.
func (v View) protects(call *Call) bool { return v.protection.holds(call) }

// protectsIn reports whether a group has a protected result.
func (v View) protectsIn(g *Group) bool { return v.protection.in(g) }

// protectsAt reports whether a prepared edit would replace a protected result.
func (v View) protectsAt(p *Prepared) bool {
	return v.protection != nil && !p.never && v.protects(p.call)
}

// Protected reports whether group i has a protected result, so that it must not be dropped.
func (v View) Protected(i int) bool { return v.protectsIn(v.items[i].group) }

// Protect makes reductions protect the results that named returns for a view: those that roots name in it.
func (p *Pipeline) Protect(named func(View) map[eventlog.Place]bool) { p.named = named }

// rootedAtFirst adds results that roots name to the state before any reducer runs: of the results that no context has
// shown yet, and of those that a caller's compaction has covered since the last reduction.
func (r *reduction) rootedAtFirst(before, s State) State {
	if r.Pipeline.named == nil || r.policy.Whole {
		return s
	}
	if r.named = r.Pipeline.named(r.Resume(before)); r.named == nil {
		r.named = map[eventlog.Place]bool{}
	}
	if r.policy.ToolResults.Strict {
		s.Rooted = slices.DeleteFunc(slices.Clone(s.Rooted), func(at eventlog.Place) bool { return !r.named[at] })
	}
	return s.withRooted(r.named, func(at eventlog.Place) bool {
		return r.policy.ToolResults.Strict || at.Seq > before.AskedAsOf || at.Seq > before.CollapsedThrough && at.Seq <= s.CollapsedThrough
	})
}

// root protects the results that roots name and that a view shows in full. A result that was reduced before
// stays reduced.
func (r *reduction) root(now Result) Result {
	if len(r.named) == 0 {
		return now
	}
	full := map[eventlog.Place]bool{}
	for i := range now.View.items {
		it := &now.View.items[i]
		for c := range it.group.Calls {
			call := &it.group.Calls[c]
			full[call.Place()] = it.dropped == nil && !edited(now.View, i, call)
		}
	}
	now.State = now.State.withRooted(r.named, func(at eventlog.Place) bool { return full[at] })
	now.View.protection = r.retention.protection(now.State)
	return now
}

// unroot returns the state without the results after event beyond that no root names any more.
func (r *reduction) unroot(s State, beyond eventlog.Seq) State {
	if r.named == nil {
		return s // it was not asked
	}
	gone := func(at eventlog.Place) bool { return at.Seq > beyond && !r.named[at] }
	if slices.ContainsFunc(s.Rooted, gone) {
		s.Rooted = slices.DeleteFunc(slices.Clone(s.Rooted), gone)
	}
	return s
}

// withRooted returns the state with those of the named results added for which the function which returns true.
func (s State) withRooted(named map[eventlog.Place]bool, which func(eventlog.Place) bool) State {
	var more []eventlog.Place
	for at := range named {
		if _, ok := slices.BinarySearchFunc(s.Rooted, at, eventlog.Place.Compare); !ok && which(at) {
			more = append(more, at)
		}
	}
	if len(more) > 0 {
		s.Rooted = slices.SortedFunc(slices.Values(slices.Concat(s.Rooted, more)), eventlog.Place.Compare)
	}
	return s
}

// release ends the protection of the oldest results: of as many as bring the view down to the size after a forced
// cut, or of all if that is not enough.
func (r *reduction) release(now Result) Result {
	all := now.View.protected()
	if len(all) == 0 {
		return now
	}
	need, enough := now.View.Tokens()-fraction(r.budget.Target, r.policy.Collapse.To), 0
	for ; enough < len(all)-1 && need > all[enough].tokens; enough++ {
		need -= all[enough].tokens
	}
	for _, last := range []int{enough, len(all) - 1} {
		s := now.State
		s.Released = all[last].call.Seq
		next := r.apply(s)
		next = r.free(r.retention, next, r.demand(next.View.Tokens()))
		if next = r.dropOlder(next); r.over(next) {
			next = r.clipResults(next)
		}
		if next.View.Tokens() < now.View.Tokens() {
			now = next
		}
		if !r.over(now) {
			break
		}
	}
	return now
}

// protectedResult is a result that is protected, and its size.
type protectedResult struct {
	call   *Call
	tokens uint64
}

// protected returns the protected results in a view, oldest first.
func (v View) protected() []protectedResult {
	var all []protectedResult
	for i := range v.items {
		g := v.items[i].group
		for c := range g.Calls {
			if call := &g.Calls[c]; v.protects(call) {
				all = append(all, protectedResult{call, g.Messages[call.Result].Tokens})
			}
		}
	}
	slices.SortFunc(all, func(a, b protectedResult) int { return a.call.Place().Compare(b.call.Place()) })
	return all
}

// released says, for a note, which protected results of a view the last resort evicted.
func (v View) released(through eventlog.Seq) string {
	const most = 20 // the record has the reason with each pointer
	all := v.protected()
	n := slices.IndexFunc(all, func(p protectedResult) bool { return p.call.Seq > through })
	if n < 0 {
		n = len(all)
	}
	said := make([]string, min(n, most))
	for i := range said {
		call := all[i].call
		said[i] = fmt.Sprintf("%s (%s)", Pointer(call.Seq, call.Block), v.protection.why(call))
	}
	return fmt.Sprintf("it took %d protected results: %s", n, strings.Join(said, ", "))
}

// lateResult is a result that came after a later model call had begun.
type lateResult struct{ seq, group eventlog.Seq }

// lateFor returns LateAfter of a state, or 0 if no late result keeps a group of the state's run.
func (c *Conversation) lateFor(s State) eventlog.Seq {
	for _, r := range slices.Backward(c.late) {
		if s.LateAfter == 0 || r.seq <= s.LateAfter {
			break
		}
		if r.group <= s.CollapsedThrough {
			return s.LateAfter
		}
	}
	return 0
}
