package reduce

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Checkpoint has what a conversation must know of the groups that a digest replaces. With it, and with the events of
// the groups that are shown, a conversation goes on as if it had read the whole log, as long as the digest stays. It
// is a cache: the whole log gives the same contexts.
type Checkpoint struct {
	// AsOf is the event up to which the log was read. Sum identifies the digest, as in Written. Gauge is the name of
	// the gauge that counted the tokens.
	AsOf  eventlog.Seq
	Sum   [32]byte
	Gauge string
	// Turns, Tokens and Chars are the size of the log, unreduced. Call and Newest are the times of the newest model
	// call and of the newest event; zero if none has a time.
	Turns        uint32
	Tokens       uint64
	Chars        int
	Call, Newest time.Time
	// Groups, Messages, Calls and RawTokens are the numbers of the run, including its groups that stay in view.
	// Through is the run's last event, Turn the turn of its last group, and Changed the newest event that changed one
	// of its groups. Opens is the same as in View.
	Groups, Messages, Calls int
	RawTokens               uint64
	Through                 eventlog.Seq
	Turn                    uint32
	Changed, Opens          eventlog.Seq
	// Events are the events of all groups, and Shown those of the groups that are shown. Before is how many
	// shown groups come before the end of the run. ShownSum is a SHA-256 over the shown groups. Stay are the
	// first events of the groups of the run that stay in view, without the anchor and pinned groups.
	Events, Shown eventlog.Ranges
	ShownSum      [32]byte
	Before        int
	Stay          []eventlog.Seq
	// Dropped are the newest dropped groups, oldest first; the first entry is the sum of all older ones.
	Dropped []DroppedGroup
	// OpenCalls are the ids of calls in dropped groups that have no result, and Names the hashes
	// of ids after the last whole stretch of NamesOf.
	OpenCalls []string
	Names     []uint32
	// FileTokens is the size of the groups that worked on files: of all groups with AllFiles, else of the
	// first ones, as far as they were looked at.
	FileTokens uint64
	AllFiles   bool
}

// DroppedGroup is a group of which only its place and size are known.
type DroppedGroup struct {
	First, Last eventlog.Seq
	Tokens      uint64
}

const (
	// mostDropped and mostOpen bound the dropped groups and the open calls of a checkpoint.
	mostDropped = 64
	mostOpen    = 256
)

// CheckpointSum returns the Sum of the digest that a view shows; false if Checkpoint would return none.
func (c *Conversation) CheckpointSum(v View) (sum [32]byte, ok bool) {
	m := c.memoOf(v)
	if m == nil || m.key.protection != (protectionKey{}) || m.key.lateAfter > 0 || !c.followsFromGroups() {
		return sum, false
	}
	return m.sum, true
}

// followsFromGroups reports whether all groups were read and contexts depend on nothing else in the log. A checkpoint
// has nothing else.
func (c *Conversation) followsFromGroups() bool {
	reminded := len(c.reminders) > 0 || len(c.live) > 0
	compacted := len(c.compactions.inForce) > 0 || len(c.compactions.void) > 0
	bounded := c.boundary.seq > 0 || len(c.boundary.skipped) > 0
	return c.Whole() && c.filter == nil && !reminded && !compacted && !bounded && !c.SharesEvents()
}

// Checkpoint returns the checkpoint of the digest that a view shows; false if later views may depend on more than a
// checkpoint has.
func (c *Conversation) Checkpoint(v View) (cp Checkpoint, ok bool) {
	if _, ok := c.CheckpointSum(v); !ok {
		return cp, false
	}
	m := c.memoOf(v)
	cp = Checkpoint{
		AsOf: c.head, Sum: m.sum, Gauge: c.gauge.Name(), Turns: c.turns, Tokens: c.tokens, Chars: c.chars, Call: c.lastAt.call, Newest: c.lastAt.newest,
		Groups: m.dropped.Groups, Messages: m.dropped.Messages, Calls: m.dropped.Calls, RawTokens: m.dropped.RawTokens,
		Through: m.key.through, Turn: m.turn, Changed: m.changed, Opens: m.opens,
		Events: slices.Clone(c.sources.ranges), FileTokens: c.digestMemos.fileWork, AllFiles: c.digestMemos.seen == len(c.groups),
	}
	for _, g := range m.stay {
		cp.Stay = append(cp.Stay, g.First)
	}
	slices.Sort(cp.Stay)
	before := inOrder(m.front, m.stay)
	cp.Before = len(before)
	shown := slices.Concat(before, c.groups[m.next:])
	var seqs []eventlog.Seq
	for _, g := range shown {
		for i := range g.Messages {
			seqs = append(seqs, g.Messages[i].Seqs...)
		}
		if slices.ContainsFunc(g.Calls, func(c Call) bool { return c.Repeat > 0 }) {
			return cp, false
		}
	}
	cp.Shown, cp.ShownSum = eventlog.RangesOf(seqs), sumOf(shown)
	stays := among(m.stay)
	gone := slices.DeleteFunc(slices.Clone(c.groups[:m.next]), func(g *Group) bool { return g.Anchor || g.Pinned || stays(g) })
	cp.Dropped, cp.OpenCalls, cp.Names = droppedGroups(gone), c.openCallsOf(gone), c.namesAfterStretches()
	return cp, len(cp.OpenCalls) <= mostOpen && len(gone) > 0
}

// droppedGroups returns the newest of the groups; the first entry is the sum of all older ones.
func droppedGroups(groups []*Group) []DroppedGroup {
	var out []DroppedGroup
	for i, g := range groups {
		if last := len(out) - 1; i > 0 && len(groups)-i >= mostDropped {
			out[last].Last, out[last].Tokens = max(out[last].Last, g.Last), out[last].Tokens+g.Tokens
			continue
		}
		out = append(out, DroppedGroup{g.First, g.Last, g.Tokens})
	}
	return out
}

// openCallsOf returns the ids of the calls in some groups that have no result.
func (c *Conversation) openCallsOf(groups []*Group) []string {
	of := make(map[*Group]bool, len(groups))
	for _, g := range groups {
		of[g] = true
	}
	var ids []string
	for id, at := range c.open {
		if of[c.groups[at.group]] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// sumOf returns a SHA-256 over the properties of groups that may differ although they were read from the same
// events.
func sumOf(groups []*Group) (sum [32]byte) {
	h := sha256.New()
	for _, g := range groups {
		_, _ = fmt.Fprintf(h, "%d %d %d %d %t %t %t %d %q %d %d %d %t %d\n", g.First, g.Last, g.Kind, g.Turn, g.Pinned, g.Anchor, g.Opens, g.Human, g.Standing, g.Tokens, g.Chars, g.changed, g.Sealed, len(g.Messages))
		for i := range g.Calls {
			c := &g.Calls[i]
			_, _ = fmt.Fprintf(h, "%q %d %t %d %d\n", c.ID, c.Repeat, c.Interrupted, c.Seq, c.Turn)
		}
	}
	h.Sum(sum[:0])
	return sum
}

// memoOf returns the memo of the digest that a view shows; nil if there is none.
func (c *Conversation) memoOf(v View) *digestMemo {
	for i := range c.digestMemos.memos {
		if m := &c.digestMemos.memos[i]; m.key != (digestKey{}) && m.key.through == v.digest.Through && m.text == v.digest.Text {
			return m
		}
	}
	return nil
}
