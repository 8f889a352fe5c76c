package reduce

import (
	"reflect"
	"slices"
)

// lastRun is what a state showed of a conversation. As the log grows, each new group is put
// after what it showed, so that a run does not go through the groups before again: the reducers
// go by the state alone there.
type lastRun struct {
	policy  Policy
	decided *Decided
	// state is that of the result, but for AskedAsOf, which shows nothing.
	state  State
	result Result
	// groups is how many of the conversation's the result is of.
	groups int
	// aged is what the rules by age would do to the same groups; nil where that is not known.
	aged *aged
}

// lastRuns are those used last, newest last: as many as policies and budgets that take turns.
type lastRuns struct {
	kept []*lastRun
	// tried are those of the run that goes on; one of them is kept at its end.
	tried []*lastRun
}

const (
	maxLastRuns  = 4
	lastRunBytes = 96 // for each group
)

// forget drops what showed group i, which is about to change.
func (all *lastRuns) forget(i int) {
	changes := func(s *lastRun) bool { return i < s.groups }
	all.kept, all.tried = slices.DeleteFunc(all.kept, changes), slices.DeleteFunc(all.tried, changes)
}

// bytes is about how much memory they take.
func (all *lastRuns) bytes() (n int) {
	for _, s := range all.kept {
		n += lastRunBytes * s.groups
	}
	return n
}

// shows reports whether it is what a pipeline shows of a state.
func (s *lastRun) shows(p *Pipeline, of State) bool {
	of.AskedAsOf = 0
	return s.decided == p.digests.decided && reflect.DeepEqual(s.state, of) && reflect.DeepEqual(s.policy, p.policy)
}

// incremental reports whether what a state shows of a group never depends on the groups after
// it: rules that hold at every run and what is protected do.
func (p *Pipeline) incremental(s State) bool {
	return !p.policy.ToolResults.Strict && p.named == nil && p.retention.protection(s) == nil
}

// find returns what a state showed before, with the groups that came since.
func (all *lastRuns) find(p *Pipeline, s State) *lastRun {
	for _, list := range [][]*lastRun{all.tried, all.kept} {
		for _, known := range slices.Backward(list) {
			if !known.shows(p, s) {
				continue
			}
			if known.grow(p, s) {
				return known
			}
			all.kept = slices.DeleteFunc(all.kept, func(old *lastRun) bool { return old == known })
			return nil
		}
	}
	return nil
}

// keep makes what a run ended with the newest that is kept, and forgets what else it tried.
func (all *lastRuns) keep(p *Pipeline, s State) {
	known := all.find(p, s)
	all.tried = nil
	if known == nil {
		return
	}
	known.result.View.ended = nil // it would keep the request
	all.kept = append(slices.DeleteFunc(all.kept, func(old *lastRun) bool { return old == known }), known)
	all.kept = all.kept[max(0, len(all.kept)-maxLastRuns):]
}

// grow puts the groups that came since after what is shown; false where the run should end.
func (s *lastRun) grow(p *Pipeline, of State) bool {
	fresh := p.conv.groups[s.groups:]
	if len(fresh) == 0 {
		return true
	}
	tail := NewView(p.conv.gauge, fresh)
	tail.ended, tail.recall = p.err, p.policy.Recall
	steps := slices.Clone(s.result.Steps)
	for i, stage := range p.stages() {
		var more Step
		tail, more = stage.run(tail, of)
		steps[i] = stage.after(steps[i], more, of)
	}
	if p.ended() != nil {
		return false
	}
	v := &s.result.View
	v.gauge = p.conv.gauge // an empty view has none
	v.items, v.tokens, v.opens = append(v.items, tail.items...), v.tokens+tail.tokens, max(v.opens, tail.opens)
	if tail.human != nil && (v.human == nil || tail.human.Human > v.human.Human) {
		v.human = tail.human
	}
	s.result.Steps, s.groups = steps, len(p.conv.groups)
	return true
}

// after is what a stage did to groups and then to those that came after them.
func (s stage) after(first, then Step, of State) Step {
	first.TokensBefore += then.TokensBefore
	first.TokensAfter += then.TokensAfter
	first.Touched += then.Touched
	if c, ok := s.Reducer.(clipping); ok { // the only one that goes by no event of the state
		first.Note = c.note(first.Touched, of)
	}
	return first
}
