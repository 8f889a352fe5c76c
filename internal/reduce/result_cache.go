package reduce

import (
	"reflect"
	"slices"
)

// cachedResult is the result of a state for the first groups of a conversation. As the log grows, only the new groups
// are reduced and appended, because the edits of a group depend on the state and not on later groups (see
// incremental).
type cachedResult struct {
	policy  Policy
	decided *Decided
	// state is the state of the result, without AskedAsOf, which does not change the view.
	state  State
	result Result
	// groups is how many groups of the conversation the result covers.
	groups int
	// aged has what the rules by age would do to these groups; nil if that is unknown.
	aged *aged
}

// resultCache has the results that were used last, so that a few policies and budgets may alternate.
type resultCache struct {
	kept []*cachedResult // newest last
	// tried are the results of the current reduction. At its end only the one that it returns is kept.
	tried []*cachedResult
	asked *asked // of the newest pipeline
}

const (
	maxCached        = 4
	cachedGroupBytes = 96 // for each group
)

// forget drops the results that cover group i, which is about to change.
func (c *resultCache) forget(i int) {
	changes := func(r *cachedResult) bool { return i < r.groups }
	c.kept, c.tried = slices.DeleteFunc(c.kept, changes), slices.DeleteFunc(c.tried, changes)
}

// bytes returns about how many bytes of memory the results take.
func (c *resultCache) bytes() (n int) {
	for _, r := range c.kept {
		n += cachedGroupBytes * r.groups
	}
	return n
}

// shows reports whether this is the result of a pipeline for a state.
func (r *cachedResult) shows(p *Pipeline, of State) bool {
	of.AskedAsOf = 0
	return r.decided == p.digests.decided && reflect.DeepEqual(r.state, of) && reflect.DeepEqual(r.policy, p.policy)
}

// incremental reports whether the edits of a group under a state never depend on later groups. They do with strict
// rules by age, and with protected results.
func (p *Pipeline) incremental(s State) bool {
	return !p.policy.ToolResults.Strict && p.named == nil && p.retention.protection(s) == nil
}

// find returns the cached result of a state, grown by the new groups; nil if there is none.
func (c *resultCache) find(p *Pipeline, s State) *cachedResult {
	for _, list := range [][]*cachedResult{c.tried, c.kept} {
		for _, known := range slices.Backward(list) {
			if !known.shows(p, s) {
				continue
			}
			if known.grow(p, s) {
				return known
			}
			c.kept = slices.DeleteFunc(c.kept, func(old *cachedResult) bool { return old == known })
			return nil
		}
	}
	return nil
}

// keep keeps the result that a reduction returned as the newest, and forgets the others that it tried.
func (c *resultCache) keep(p *Pipeline, s State) {
	known := c.find(p, s)
	c.tried = nil
	if known == nil {
		return
	}
	known.result.View.ended = nil // it would hold the request's memory
	c.kept = append(slices.DeleteFunc(c.kept, func(old *cachedResult) bool { return old == known }), known)
	c.kept = c.kept[max(0, len(c.kept)-maxCached):]
}

// grow reduces and appends the new groups; false if the reduction should stop.
func (r *cachedResult) grow(p *Pipeline, of State) bool {
	fresh := p.conv.groups[r.groups:]
	if len(fresh) == 0 {
		return true
	}
	tail := NewView(p.conv.gauge, fresh)
	tail.ended, tail.asked = p.err, p.asked()
	steps := slices.Clone(r.result.Steps)
	for i, stage := range p.stages() {
		var more Step
		tail, more = stage.run(tail, of)
		steps[i] = stage.after(steps[i], more, of)
	}
	if p.ended() != nil {
		return false
	}
	v := &r.result.View
	v.gauge = p.conv.gauge // an empty view has none
	v.items, v.tokens, v.opens = append(v.items, tail.items...), v.tokens+tail.tokens, max(v.opens, tail.opens)
	if tail.human != nil && (v.human == nil || tail.human.Human > v.human.Human) {
		v.human = tail.human
	}
	r.result.Steps, r.groups = steps, len(p.conv.groups)
	return true
}

// after joins a stage's step for the first groups with its step for the groups after them.
func (s stage) after(first, then Step, of State) Step {
	first.TokensBefore += then.TokensBefore
	first.TokensAfter += then.TokensAfter
	first.Touched += then.Touched
	if c, ok := s.reducer.(clipping); ok { // the only reducer that still changes groups after the watermarks
		first.Note = c.note(first.Touched, of)
	}
	return first
}
