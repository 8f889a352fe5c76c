package reduce

import (
	"cmp"
	"context"
	"slices"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// View is an immutable sequence of groups and what was done to them. The zero
// value is empty. Groups after the collapsed run are in the order of the log;
// anchored and pinned groups stay wherever a run is collapsed around them.
type View struct {
	gauge  budget.Gauge
	items  []item
	digest Digest
	// digestAt is the index in items that the digest comes before.
	digestAt int
	// human is the group with the newest words of a human; nil if there is none.
	human *Group
	// opens is the first event of the group with the first user message; 0 if there is
	// none.
	opens  eventlog.Seq
	tokens uint64
	// protection is what no verb takes; nil protects nothing but what is pinned.
	protection *protection
	// recall is the tool by which the model gets back what is not shown.
	recall Recall
	// ended says why whoever asked for the view needs it no more; nil if nobody says.
	ended func() error
}

// Until returns the view for computations that end with the error of ctx.
func (v View) Until(ctx context.Context) View {
	v.ended = ctx.Err
	return v
}

// Recall is the tool by which the model gets back what the view does not show.
func (v View) Recall() Recall { return v.recall }

// Ended returns why what is computed from the view should end, if it should. What was
// computed then is to be thrown away.
func (v View) Ended() error {
	if v.ended == nil {
		return nil
	}
	return v.ended()
}

// Digest replaces the groups that were dropped from the view.
type Digest struct {
	// Through is the last event of the newest group that was dropped; 0 if none was.
	Through eventlog.Seq
	Text    string
	Tokens  uint64 // with the message's overhead
	// SummaryTokens is what the summary takes of them.
	SummaryTokens uint64
	// Groups, Messages and Calls are how many were dropped.
	Groups, Messages, Calls int
	// RawTokens is what they measured in full.
	RawTokens uint64
}

// add counts a group that is dropped.
func (d *Digest) add(g *Group) {
	d.Groups++
	d.Messages += len(g.Messages)
	d.Calls += len(g.Calls)
	d.RawTokens += g.Tokens
}

// remove takes back that a group is dropped.
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
	// dropped replaces the whole group; nil if it is shown.
	dropped *Dropped
}

// Dropped replaces a group that was dropped by itself, where it was.
type Dropped struct {
	// Text names the calls of the group; empty if it made none.
	Text    string
	Reducer string
	Reason  string
	tokens  uint64 // with the message's overhead
}

// EditKind says what was done to a block.
type EditKind uint8

// The kinds of edit.
const (
	Stubbed  EditKind = iota + 1 // the body is replaced by a pointer
	Clipped                      // head and tail are kept
	Omitted                      // a thinking block is not shown
	Redacted                     // the body is replaced by an audit pointer
)

// Edit is a block that is not rendered as the log has it.
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

// anchorEnd is the index after the anchor, as far as it was said up to an event, and
// after the first user message, whoever wrote it: that does not change when the first
// human speaks late.
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

// Spared reports whether a group stays whatever a policy would rather show: the anchor,
// what is pinned, and the newest words of a human.
func (v View) Spared(i int) bool {
	g := v.items[i].group
	return g.Anchor || g.Pinned || g == v.human
}

// InForce reports whether group i is the newest standing one of its name.
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

// Tokens is the size of everything in the view, the digest included.
func (v View) Tokens() uint64 { return v.tokens }

// Len is how many groups are in the view.
func (v View) Len() int { return len(v.items) }

// Messages is how many messages are in the view, that of the digest included.
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

// GroupTokens is the size of group i after its edits.
func (v View) GroupTokens(i int) uint64 { return v.items[i].tokens }

// Dropped returns what replaces group i, or nil if it is shown.
func (v View) Dropped(i int) *Dropped { return v.items[i].dropped }

// Edits returns what was done to group i; the slice must not be changed.
func (v View) Edits(i int) []Edit { return v.items[i].edits }

// Edit returns what was done to a block of group i, if anything.
func (v View) Edit(i, message, block int) (Edit, bool) {
	edits := v.items[i].edits
	if at, ok := findEdit(edits, message, block); ok {
		return edits[at], true
	}
	return Edit{}, false
}

// findEdit is where the edit of a block is among those of a group, or would be.
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

// TierTokens splits the view's size by tier.
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

// resultTokens is the size of the item's tool messages after edits.
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

// lastBefore is the last event before group i, or of the view if there is none.
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

// lastTurn is the turn of the newest group.
func (v View) lastTurn() uint32 {
	if len(v.items) == 0 {
		return 0
	}
	return v.items[len(v.items)-1].group.Turn
}

// tokensOf is the size of some of the groups after their edits.
func (v View) tokensOf(which func(*Group) bool) uint64 {
	var sum uint64
	for i := range v.items {
		if which(v.items[i].group) {
			sum += v.items[i].tokens
		}
	}
	return sum
}

// beforeTurns is the last event before so many of the newest turns, which only the last
// resort takes. The newest is spared in any case.
func (v View) beforeTurns(keep uint32) eventlog.Seq {
	return v.beforeFirst(func(g *Group) bool { return !g.Pinned && v.lastTurn()-g.Turn < max(keep, 1) })
}

// lateAfter is the event after which late results are as new as so many of the newest turns, pinned ones
// among them.
func (v View) lateAfter(keep uint32) eventlog.Seq {
	return v.beforeFirst(func(g *Group) bool { return v.lastTurn()-g.Turn < max(keep, 1) })
}

// beforeFirst is the last event before the first of some groups that is none of the anchor.
func (v View) beforeFirst(of func(*Group) bool) eventlog.Seq {
	for i := range v.items {
		if g := v.items[i].group; !g.Anchor && of(g) {
			return g.First - 1
		}
	}
	return v.lastBefore(max(v.Len()-1, 0)) // all of the newest stay in any case
}

// LastUser is the index of the newest user group in the view: the turns after it belong to
// the tool-use loop that is open. It is -1 where no user has said anything.
func (v View) LastUser() int {
	for i := len(v.items) - 1; i >= 0; i-- {
		if v.items[i].group.Kind == KindUser {
			return i
		}
	}
	return -1
}

// loopStart is the index of the last group that has a user's words of up to event asOf: what comes
// after it belongs to the tool-use loop that was open then.
func (v View) loopStart(asOf eventlog.Seq) int {
	last := 0
	for i := range v.items {
		if v.items[i].group.endsLoop(asOf) {
			last = i
		}
	}
	return last
}

// Excerpt returns head and tail of the body of a call's result, with a note in the gap
// that says the way back to it, in at most limit tokens. It is cut between lines where it can
// be. ok is false where the result fits already, and where limit is too small to say
// anything.
func (v View) Excerpt(i int, call *Call, limit uint64) (text string, ok bool) {
	tokens := v.items[i].group.Messages[call.Result].Blocks[0].Tokens
	short, ok := cutter{gauge: v.gauge}.cut(call.Body, tokens, limit, v.recall.Result(call))
	return short.Text, ok
}

// Shares is how many of the first groups two views show alike, as far as that is known without
// a look at them: a view that grew from another shares its items.
func (v View) Shares(w View) int {
	if len(v.items) == 0 || len(w.items) == 0 || &v.items[0] != &w.items[0] {
		return 0
	}
	return min(len(v.items), len(w.items))
}
