package reduce

import (
	"cmp"
	"context"
	"slices"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// View is an immutable sequence of groups, in the order of the log, with the edits of each. The zero value is empty.
// When a run is collapsed, the anchor and pinned groups in it stay where they are.
type View struct {
	gauge  budget.Gauge
	items  []item
	digest Digest
	// digestAt is the index of the item before which the digest comes.
	digestAt int
	// human is the group with the newest words of a human; nil if there is none.
	human *Group
	// opens is the first event of the group with the first message of the user's role; 0 if there is none.
	opens  eventlog.Seq
	tokens uint64
	// protection has the results that no verb evicts; nil protects only pinned groups.
	protection *protection
	// asked is what is known of the model that gets the view; nil if nothing is.
	asked *asked
	// ended returns why computations on the view should stop; it is nil if they never should.
	ended func() error
}

// Until returns a view on which computations stop, with ctx's error, when ctx ends.
func (v View) Until(ctx context.Context) View {
	v.ended = ctx.Err
	return v
}

// Ended returns why computations on the view should stop; nil if they should go on. If it returns an error, results
// computed on the view may be incomplete and must be discarded.
func (v View) Ended() error {
	if v.ended == nil {
		return nil
	}
	return v.ended()
}

// Digest replaces the groups that were dropped from the view.
type Digest struct {
	// Through is the event through which groups were dropped; 0 if none was.
	Through eventlog.Seq
	Text    string
	Tokens  uint64 // with the message's overhead
	// SummaryTokens is the part of Tokens that the summary takes.
	SummaryTokens uint64
	// Groups, Messages and Calls are how many of each were dropped.
	Groups, Messages, Calls int
	// RawTokens is the size of the dropped groups in full.
	RawTokens uint64
}

// add counts a group that is dropped.
func (d *Digest) add(g *Group) {
	d.Groups++
	d.Messages += len(g.Messages)
	d.Calls += len(g.Calls)
	d.RawTokens += g.Tokens
}

// remove undoes add for a group that is not dropped after all.
func (d *Digest) remove(g *Group) {
	d.Groups--
	d.Messages -= len(g.Messages)
	d.Calls -= len(g.Calls)
	d.RawTokens -= g.Tokens
}

// item is a group in the view. Edits are ordered by message and block.
type item struct {
	group  *Group
	edits  []Edit
	tokens uint64
	// dropped replaces the whole group; nil if the group is shown.
	dropped *Dropped
}

// Dropped replaces a single group that was dropped, in the same place.
type Dropped struct {
	// Text names the calls of the group; empty if it made none.
	Text    string
	Reducer string
	Reason  string
	tokens  uint64 // with the message's overhead
}

// EditKind is the kind of an edit.
type EditKind uint8

// The kinds of edit.
const (
	Stubbed  EditKind = iota + 1 // the body is replaced by a pointer
	Clipped                      // head and tail are kept
	Omitted                      // a thinking block is not shown
	Redacted                     // the body is replaced by an audit pointer
)

// Edit describes a block that is not rendered as it is in the log.
type Edit struct {
	Kind           EditKind
	Message, Block int // indexes in the group
	// Text is the result's new body, or the new text of a clipped text block;
	// unused for an omitted block.
	Text string
	// Tokens is the block's new size.
	Tokens  uint64
	Reducer string
	Reason  string
}

// NewView returns the view in which every group is in full.
func NewView(gauge budget.Gauge, groups []*Group) View {
	v := View{gauge: gauge, items: make([]item, len(groups))}
	for i, g := range groups {
		v.items[i] = item{group: g, tokens: g.Tokens}
		v.tokens += g.Tokens
		if g.Human > 0 && (v.human == nil || g.Human > v.human.Human) {
			v.human = g
		}
		if g.Opens {
			v.opens = g.First
		}
	}
	return v
}

// anchorEnd returns the index after the groups up to event through that belong to the anchor or have the first
// message of the user's role. So the index stays the same if the first human message comes later.
func (v View) anchorEnd(through eventlog.Seq) int {
	end := 0
	for i := range v.items {
		switch g := v.items[i].group; {
		case g.First > through:
			return end
		case g.Anchor, v.opens <= through && g.First <= v.opens:
			end = i + 1
		}
	}
	return end
}

// Spared reports whether group i stays under every policy, because it is in the anchor, is pinned, or has a human's
// newest words.
func (v View) Spared(i int) bool {
	g := v.items[i].group
	return g.Anchor || g.Pinned || g == v.human
}

// InForce reports whether group i is the newest standing group of its name.
func (v View) InForce(i int) bool {
	name := v.items[i].group.Standing
	return name != "" && !slices.ContainsFunc(v.items[i+1:], func(it item) bool { return it.group.Standing == name })
}

// AllInForce is InForce of each group, in time linear in their number.
func (v View) AllInForce() []bool {
	is := make([]bool, len(v.items))
	newer := map[string]bool{}
	for i := len(v.items) - 1; i >= 0; i-- {
		if name := v.items[i].group.Standing; name != "" {
			is[i] = !newer[name]
			newer[name] = true
		}
	}
	return is
}

// Tokens returns the size of the view, including the digest.
func (v View) Tokens() uint64 { return v.tokens }

// Len returns how many groups are in the view.
func (v View) Len() int { return len(v.items) }

// Messages returns how many messages are in the view, including the digest's.
func (v View) Messages() int {
	n := 0
	if v.digest.Through > 0 {
		n++
	}
	for i := range v.items {
		switch it := &v.items[i]; {
		case it.dropped == nil:
			n += len(it.group.Messages)
		case it.dropped.Text != "":
			n++
		}
	}
	return n
}

// Group returns group i of the view.
func (v View) Group(i int) *Group { return v.items[i].group }

// Groups returns the groups of the view.
func (v View) Groups() []*Group {
	all := make([]*Group, len(v.items))
	for i := range v.items {
		all[i] = v.items[i].group
	}
	return all
}

// GroupTokens returns the size of group i after its edits.
func (v View) GroupTokens(i int) uint64 { return v.items[i].tokens }

// Dropped returns what replaces group i, or nil if it is shown.
func (v View) Dropped(i int) *Dropped { return v.items[i].dropped }

// Edits returns the edits of group i. The caller must not change the slice.
func (v View) Edits(i int) []Edit { return v.items[i].edits }

// Edit returns the edit of a block of group i, if it has one.
func (v View) Edit(i, message, block int) (Edit, bool) {
	edits := v.items[i].edits
	if at, ok := findEdit(edits, message, block); ok {
		return edits[at], true
	}
	return Edit{}, false
}

// findEdit returns the index at which a group's edits have the edit of a block, or would have it.
func findEdit(edits []Edit, message, block int) (at int, ok bool) {
	if n := len(edits); n > 0 && edits[n-1].Message < message {
		return n, false // most are made in their order
	}
	return slices.BinarySearchFunc(edits, [2]int{message, block}, func(e Edit, of [2]int) int {
		return cmp.Or(cmp.Compare(e.Message, of[0]), cmp.Compare(e.Block, of[1]))
	})
}

// Digest returns what replaces the collapsed run, and the index of the group
// before which it comes.
func (v View) Digest() (Digest, int) { return v.digest, v.digestAt }

// TierTokens returns the view's size by tier.
func (v View) TierTokens() map[budget.Tier]uint64 {
	tiers := v.TierTokensFrom(0)
	tiers[budget.TierSummary] = v.digest.Tokens
	return tiers
}

// TierTokensFrom is TierTokens of the groups from one on, without the digest.
func (v View) TierTokensFrom(first int) map[budget.Tier]uint64 {
	tiers := map[budget.Tier]uint64{}
	for i := first; i < len(v.items); i++ {
		it := &v.items[i]
		if it.group.Kind == KindSystem {
			tiers[budget.TierSystem] += it.tokens
			continue
		}
		if it.dropped != nil {
			tiers[budget.TierDialogue] += it.tokens
			continue
		}
		results := it.resultTokens()
		tiers[budget.TierToolResults] += results
		tiers[budget.TierDialogue] += it.tokens - results
	}
	return tiers
}

// resultTokens returns the size of the item's tool messages after its edits.
func (it *item) resultTokens() uint64 {
	var sum uint64
	for m := range it.group.Messages {
		if msg := &it.group.Messages[m]; msg.Role == eventlog.RoleTool {
			sum += msg.Tokens
		}
	}
	for _, e := range it.edits {
		if msg := &it.group.Messages[e.Message]; msg.Role == eventlog.RoleTool {
			sum = sum + e.Tokens - msg.Blocks[e.Block].Tokens
		}
	}
	return sum
}

// lastBefore returns the event before group i, or the last event of the view if there is no group i.
func (v View) lastBefore(i int) eventlog.Seq {
	if i < len(v.items) {
		return v.items[i].group.First - 1
	}
	var last eventlog.Seq
	for i := range v.items {
		last = max(last, v.items[i].group.Last)
	}
	return last
}

// lastTurn returns the turn of the newest group.
func (v View) lastTurn() uint32 {
	if len(v.items) == 0 {
		return 0
	}
	return v.items[len(v.items)-1].group.Turn
}

// tokensOf returns the size of some of the groups after their edits.
func (v View) tokensOf(which func(*Group) bool) uint64 {
	var sum uint64
	for i := range v.items {
		if which(v.items[i].group) {
			sum += v.items[i].tokens
		}
	}
	return sum
}

// beforeTurns returns the last event before the newest keep turns, or before the newest one if keep is 0. Only the
// last resort drops groups after it.
func (v View) beforeTurns(keep uint32) eventlog.Seq {
	return v.beforeFirst(func(g *Group) bool { return !g.Pinned && v.lastTurn()-g.Turn < max(keep, 1) })
}

// lateAfter returns the last event before the newest keep turns, including pinned ones: a late result after it is as
// new as these turns. It is at least 1, because a State.LateAfter of 0 keeps no late result, and event 1 cannot be
// one.
func (v View) lateAfter(keep uint32) eventlog.Seq {
	return max(1, v.beforeFirst(func(g *Group) bool { return v.lastTurn()-g.Turn < max(keep, 1) }))
}

// beforeFirst returns the last event before the first group outside the anchor for which the function of returns
// true.
func (v View) beforeFirst(of func(*Group) bool) eventlog.Seq {
	for i := range v.items {
		if g := v.items[i].group; !g.Anchor && of(g) {
			return g.First - 1
		}
	}
	return v.lastBefore(max(v.Len()-1, 0)) // the newest group stays in any case
}

// LastUser returns the index of the newest user group in the view, or -1. The turns after it are the open tool-use
// loop.
func (v View) LastUser() int {
	for i := len(v.items) - 1; i >= 0; i-- {
		if v.items[i].group.Kind == KindUser {
			return i
		}
	}
	return -1
}

// loopStart returns the index of the last group with a user's words of event asOf or before. The groups after it were
// the open tool-use loop at that event.
func (v View) loopStart(asOf eventlog.Seq) int {
	last := 0
	for i := range v.items {
		if v.items[i].group.endsLoop(asOf) {
			last = i
		}
	}
	return last
}

// Excerpt returns the head and tail of the body of a call's result in at most limit tokens, cut between lines if
// possible, with a note in the gap that says how to get the whole body. ok is false if the body fits already, and if
// limit leaves room for nothing.
func (v View) Excerpt(i int, call *Call, limit uint64) (text string, ok bool) {
	tokens := v.items[i].group.Messages[call.Result].Blocks[0].Tokens
	short, ok := cutter{gauge: v.gauge}.cut(call.Body, tokens, limit, v.Recall().Result(call))
	return short.Text, ok
}

// Shares returns how many of the first groups two views are known to have in common, with the same edits. It compares
// no groups, but finds whether one view grew from the other, so that they share the memory of their items.
func (v View) Shares(w View) int {
	if len(v.items) == 0 || len(w.items) == 0 || &v.items[0] != &w.items[0] {
		return 0
	}
	return min(len(v.items), len(w.items))
}
