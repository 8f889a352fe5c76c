package reduce

import (
	"slices"
)

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
	user   int // the last item with a user's words, or -1
}

// agedTokens returns by how many tokens a batch now would make a view smaller, and how many it
// would rewrite, by rewrittenTokens; false where the reducers have to run to find out.
func (r *reduction) agedTokens(now Result) (freed, rewritten uint64, ok bool) {
	if !r.incremental(now.State) {
		return 0, 0, false
	}
	known := r.conv.cached.find(r.Pipeline, now.State)
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
// false for rules that count results, and where the reduction should end.
func (a *aged) advance(r *reduction, v View, s State) bool {
	look := a.takeDue(r.conv.turns)
	again := map[int]bool{} // numbers of results that came once more
	for i := len(a.tokens); i < v.Len(); i++ {
		if !a.take(r, v.items[i], i, again) {
			return false
		}
		look = append(look, i)
		if a.user == i {
			look, a.sealed = append(look, a.sealed...), nil
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
		if g := v.items[i].group; r.policy.Thinking.KeepTurns != nil && g.Sealed && i > a.user {
			a.sealed = append(a.sealed, i)
		}
		a.put(v, i, a.lookAt(r, v, i, s))
	}
	return true
}

// take takes in item i as it is shown, and notes when to look at it again. It is false where a rule
// counts its results.
func (a *aged) take(r *reduction, it item, i int, again map[int]bool) bool {
	a.tokens = append(a.tokens, it.tokens)
	a.sum += it.tokens
	if a.differs == i {
		a.differs, a.front = i+1, a.front+it.tokens
	}
	g := it.group
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
	if g.endsLoop(r.conv.head) {
		a.user = i
	}
	if keep := r.policy.Thinking.KeepTurns; keep != nil && g.Kind == KindTurn && slices.ContainsFunc(g.Messages, func(m Message) bool { return m.thinks }) {
		a.due[g.Turn+*keep] = append(a.due[g.Turn+*keep], i)
	}
	return true
}

// takeDue returns the items that have come due since the turn that was asked for last, up to a turn.
func (a *aged) takeDue(turn uint32) (look []int) {
	if a.turn > 0 {
		for due := a.turn + 1; due <= turn; due++ {
			look = append(look, a.due[due]...)
			delete(a.due, due)
		}
	}
	a.turn = turn
	return look
}

// lookAt is what item i takes under a state, by the reducers themselves: beside it they see only
// what they may compare it with.
func (a *aged) lookAt(r *reduction, v View, i int, s State) uint64 {
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
