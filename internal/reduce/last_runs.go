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

// Shares is how many of the first groups two views show alike, as far as that is known without
// a look at them: a view that grew from another shares its items.
func (v View) Shares(w View) int {
	if len(v.items) == 0 || len(w.items) == 0 || &v.items[0] != &w.items[0] {
		return 0
	}
	return min(len(v.items), len(w.items))
}

// aged is what the items of a view take once the rules by age are moved up to the head. It looks
// only at the groups that these rules may take with a new turn: when one comes of age is known, and
// a result that is returned again is found by its number.
type aged struct {
	tokens []uint64 // of each item
	sum    uint64
	// differs is the first item that takes other than the view shows, and front what those
	// before it take.
	differs int
	front   uint64
	turn    uint32
	// due are the items to be looked at again in a turn, copies those whose results have a
	// number, and sealed those whose reasoning may go once a user says something.
	due    map[uint32][]int
	copies map[int][]int
	sealed []int
	user   int // the last item of a user, or -1
}

// agedTokens returns by how many tokens a batch now would make the view of a run smaller, and how
// many it would rewrite, by rewrittenTokens; false where that takes a run.
func (r *run) agedTokens(now Result) (freed, rewritten uint64, ok bool) {
	if !r.incremental(now.State) {
		return 0, 0, false
	}
	known := r.conv.runs.find(r.Pipeline, now.State)
	if known == nil || known.groups != len(r.conv.groups) || known.result.View.Len() != now.View.Len() {
		return 0, 0, false
	}
	if known.aged == nil {
		known.aged = &aged{due: map[uint32][]int{}, copies: map[int][]int{}, user: -1}
	}
	a := known.aged
	if !a.advance(r, now.View, r.evict(now.State)) {
		known.aged = nil
		return 0, 0, false
	}
	after := a.sum + now.View.digest.Tokens
	freed = now.View.tokens - min(now.View.tokens, after)
	return freed, a.sum - a.front, true
}

// advance takes in the items that came since, and looks again at those that may be due. It is
// false for rules that count results, and where the run should end.
func (a *aged) advance(r *run, v View, s State) bool {
	var look []int
	if a.turn > 0 {
		for turn := a.turn + 1; turn <= r.conv.turns; turn++ {
			look = append(look, a.due[turn]...)
			delete(a.due, turn)
		}
	}
	a.turn = r.conv.turns
	again := map[int]bool{} // numbers of results that came once more
	keep := r.policy.Thinking.KeepTurns
	for i := len(a.tokens); i < v.Len(); i++ {
		g := v.items[i].group
		a.tokens = append(a.tokens, v.items[i].tokens)
		a.sum += v.items[i].tokens
		if a.differs == i {
			a.differs, a.front = i+1, a.front+v.items[i].tokens
		}
		look = append(look, i)
		for c := range g.Calls {
			call := &g.Calls[c]
			rule := r.retention.rules.rule(call.Name, r.ended)
			if rule.Last > 0 {
				return false
			}
			if rule.Turns > 0 && !call.Interrupted {
				a.due[call.Turn+rule.Turns] = append(a.due[call.Turn+rule.Turns], i)
			}
			if n := call.returned; n > 0 && r.policy.Duplicates {
				again[n] = true
				a.copies[n] = append(a.copies[n], i)
			}
		}
		if g.Kind == KindUser {
			a.user = i
			look, a.sealed = append(look, a.sealed...), nil
		}
		if keep != nil && g.Kind == KindTurn && slices.ContainsFunc(g.Messages, func(m Message) bool { return m.thinks }) {
			a.due[g.Turn+*keep] = append(a.due[g.Turn+*keep], i)
		}
	}
	for n := range again {
		look = append(look, a.copies[n]...)
	}
	slices.Sort(look)
	for _, i := range slices.Compact(look) {
		if r.ended() != nil {
			return false
		}
		if g := v.items[i].group; keep != nil && g.Sealed && i > a.user {
			a.sealed = append(a.sealed, i)
		}
		a.put(v, i, a.lookAt(r, v, i, s))
	}
	return true
}

// lookAt is what item i takes under a state, by the reducers themselves: beside it they see only
// what they may compare it with.
func (a *aged) lookAt(r *run, v View, i int, s State) uint64 {
	beside := []int{i}
	if a.user > i {
		beside = append(beside, a.user)
	}
	for c := range v.items[i].group.Calls {
		if copies := a.copies[v.items[i].group.Calls[c].returned]; len(copies) > 0 {
			beside = append(beside, copies[len(copies)-1])
		}
	}
	slices.Sort(beside)
	beside = slices.Compact(beside)
	groups := make([]*Group, len(beside))
	for n, at := range beside {
		groups[n] = v.items[at].group
	}
	alone := NewView(r.conv.gauge, groups)
	alone.recall, alone.ended = v.recall, v.ended
	for _, stage := range r.stages() {
		alone, _ = stage.Reduce(alone, s)
	}
	return alone.items[slices.Index(beside, i)].tokens
}

// put notes what item i takes.
func (a *aged) put(v View, i int, tokens uint64) {
	a.sum += tokens - a.tokens[i]
	a.tokens[i] = tokens
	switch shown := v.items[i].tokens; {
	case i < a.differs && tokens != shown:
		for ; a.differs > i; a.differs-- {
			a.front -= v.items[a.differs-1].tokens
		}
	case i == a.differs && tokens == shown:
		for ; a.differs < len(a.tokens) && a.tokens[a.differs] == v.items[a.differs].tokens; a.differs++ {
			a.front += a.tokens[a.differs]
		}
	}
}
