package reduce

import (
	"slices"
)

// aged tracks the size that each item of a view would have if the rules by age were evaluated at the head. In a new
// turn it looks only at the items that may change: it knows the turn in which each item becomes old enough, and finds
// repeated results by their number.
type aged struct {
	tokens []uint64 // the size of each item
	sum    uint64   // of tokens
	// differs is the first item whose size differs from that in the view. front is the size of the items before it.
	differs int
	front   uint64
	turn    uint32 // for which due was emptied last
	// due are the items to look at again, by turn. copies are the items by the number of a result in them. sealed are
	// the items whose sealed reasoning may be omitted after the next message of a user.
	due    map[uint32][]int
	copies map[int][]int
	sealed []int
	user   int // the last item with a user's words, or -1
}

// agedTokens returns how many tokens a batch would free now, and how many it would rewrite, as rewrittenTokens counts
// them; false if only the reducers can find out.
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

// advance adds the new items of a view, and looks again at the items that may have changed. It returns false if a
// rule counts results, which aged cannot track, and if the reduction should stop.
func (a *aged) advance(r *reduction, v View, s State) bool {
	look := a.takeDue(r.conv.turns)
	again := map[int]bool{} // numbers of the results of new items
	for i := len(a.tokens); i < v.Len(); i++ {
		if !a.add(r, v.items[i], i, again) {
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
		a.resize(v, i, a.lookAt(r, v, i, s))
	}
	return true
}

// add adds item i with its size in the view, and records when to look at it again. It returns false if a rule counts
// its results.
func (a *aged) add(r *reduction, it item, i int, again map[int]bool) bool {
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

// takeDue removes and returns the items that are due after the turn of the last call, up to a turn.
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

// lookAt runs the reducers to find the size of item i under a state. They get only this item and those with which
// they may compare it: the last user's message and the newest copies of its results.
func (a *aged) lookAt(r *reduction, v View, i int, s State) uint64 {
	seen := []int{i}
	if a.user > i {
		seen = append(seen, a.user)
	}
	for c := range v.items[i].group.Calls {
		if copies := a.copies[v.items[i].group.Calls[c].returned]; len(copies) > 0 {
			seen = append(seen, copies[len(copies)-1])
		}
	}
	slices.Sort(seen)
	seen = slices.Compact(seen)
	groups := make([]*Group, len(seen))
	for n, at := range seen {
		groups[n] = v.items[at].group
	}
	alone := NewView(r.conv.gauge, groups)
	alone.asked, alone.ended = v.asked, v.ended
	for _, stage := range r.stages() {
		alone, _ = stage.Reduce(alone, s)
	}
	return alone.items[slices.Index(seen, i)].tokens
}

// resize sets the size of item i.
func (a *aged) resize(v View, i int, tokens uint64) {
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
