package reduce

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// ErrIncomplete ends a reduction that would need groups which the conversation was begun without; the
// same over the whole log may follow.
var ErrIncomplete = errors.New("the conversation was begun at its digest, and the reduction needs what came before")

// Checkpoint is what a conversation has to know of the groups that a digest replaces: with it and the
// events of the groups that are shown it goes on as one that read the whole log, for as long as the
// digest stays. It is nothing that the log would not give again.
type Checkpoint struct {
	// AsOf is the event that the log was read up to, Sum what the digest depends on, as in
	// Written, and Gauge the name of what counted the tokens.
	AsOf  eventlog.Seq
	Sum   [32]byte
	Gauge string
	// Turns, Tokens and Chars are the size of the log, unreduced. Call and Newest are when the
	// newest model call and the newest event were; zero if none has a time.
	Turns        uint32
	Tokens       uint64
	Chars        int
	Call, Newest time.Time
	// Groups, Messages, Calls and RawTokens count what the run took, those included that stay;
	// Through is its last event, Turn the turn of its last group, Changed the event that changed
	// one of its groups last, and Opens as in View.
	Groups, Messages, Calls int
	RawTokens               uint64
	Through                 eventlog.Seq
	Turn                    uint32
	Changed, Opens          eventlog.Seq
	// Events are those of all groups, and Shown of those that are shown, of which the first
	// Before come before the end of the run. ShownSum is the SHA-256 of what those groups are.
	// Stay are the first events of those beside the digest that are no anchor and not pinned.
	Events, Shown eventlog.Ranges
	ShownSum      [32]byte
	Before        int
	Stay          []eventlog.Seq
	// Dropped are the newest of the dropped groups, oldest first; the first is the sum of all older ones.
	Dropped []DroppedGroup
	// OpenCalls are the ids of calls in dropped groups that have no result, and Names the hashes
	// of ids after the last whole stretch of NamesOf.
	OpenCalls []string
	Names     []uint32
	// FileTokens is the size of the groups that worked on files, of all of them if AllFiles.
	FileTokens uint64
	AllFiles   bool
}

// DroppedGroup is a group of which only its place and size are known.
type DroppedGroup struct {
	First, Last eventlog.Seq
	Tokens      uint64
}

const (
	// namesEvery is how many events a stretch of NamesOf has.
	namesEvery = 4096
	// mostDropped bounds the dropped groups that are known, and mostOpen the calls.
	mostDropped = 64
	mostOpen    = 256
)

// begun is what a conversation knows that was begun at a checkpoint.
type begun struct {
	Checkpoint
	// used reports whether a name was used up to the checkpoint.
	used func(uint32) bool
	// settled says that all groups that are shown were read.
	settled bool
	// older is the index of the group that is the sum of all older ones; -1 if there is none.
	older int
}

// noteNames notes the ids that a message uses first. Where an id was used before the checkpoint, the
// message belongs to a group that is not known, or its call has to be distinguished from an older one.
func (c *Conversation) noteNames(e eventlog.Event, m *eventlog.Message) {
	note := func(name string) {
		h := nameHash(name)
		if c.begun != nil && c.begun.settled && c.begun.used(h) {
			c.missing = true
		}
		c.names = append(c.names, usedName{e.Seq, h})
	}
	if m.GroupID != "" {
		if _, ok := c.byGroupID[m.GroupID]; !ok {
			note(m.GroupID)
		}
	}
	for _, b := range m.Blocks {
		if call, ok := b.(eventlog.ToolCall); ok {
			note(call.CallID)
		}
	}
}

// changed takes note that group i changes, which took so many tokens.
func (c *Conversation) changed(i int, tokens uint64) {
	if c.begun == nil || !c.begun.settled {
		return
	}
	c.missing = c.missing || i < c.digestMemos.memos[0].next
	if i < c.digestMemos.seen {
		c.begun.AllFiles = false
		c.begun.FileTokens -= min(c.begun.FileTokens, tokens)
	}
}

// usedName is the hash of the id of a call or a group, and the event that used it.
type usedName struct {
	seq  eventlog.Seq
	hash uint32
}

func nameHash(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32()
}

// NamesOf are the hashes of the ids in a whole stretch of the log, ascending, and its last event;
// false where stretch n, from 0 on, is not whole yet or was not read.
func (c *Conversation) NamesOf(n int) (hashes []uint32, last eventlog.Seq, ok bool) {
	last = eventlog.Seq(n+1) * namesEvery
	if last > c.head || c.begun != nil {
		return nil, 0, false
	}
	for _, u := range c.names[c.nameAfter(last-namesEvery):c.nameAfter(last)] {
		hashes = append(hashes, u.hash)
	}
	slices.Sort(hashes)
	return hashes, last, true
}

// Stretches is how many whole stretches of NamesOf a log has at an event.
func Stretches(head eventlog.Seq) int { return int(head / namesEvery) }

func (c *Conversation) nameAfter(seq eventlog.Seq) int {
	i, _ := slices.BinarySearchFunc(c.names, seq, func(u usedName, seq eventlog.Seq) int {
		if u.seq <= seq {
			return -1
		}
		return 1
	})
	return i
}

// Incomplete reports whether what was asked of the conversation needs groups that it was begun
// without. It is of no use then.
func (c *Conversation) Incomplete() bool { return c.missing }

// Whole reports whether the conversation has all groups of the log.
func (c *Conversation) Whole() bool { return c.begun == nil }

// CheckpointSum is the sum of the digest that a view shows; false where there is none of which Checkpoint
// says anything.
func (c *Conversation) CheckpointSum(v View) (sum [32]byte, ok bool) {
	m := c.memoOf(v)
	if m == nil || c.begun != nil || m.key.protection != (protectionKey{}) || m.key.lateAfter > 0 || len(c.reminders) > 0 || len(c.live) > 0 || c.filter != nil ||
		len(c.compactions.inForce) > 0 || len(c.compactions.void) > 0 || c.boundary.seq > 0 || len(c.boundary.skipped) > 0 || len(c.sources.shared) > 0 {
		return sum, false
	}
	return m.sum, true
}

// Checkpoint is what has to be known of the groups that the digest of a view replaces; false where that
// is not all that a view may depend on.
func (c *Conversation) Checkpoint(v View) (f Checkpoint, ok bool) {
	if _, ok := c.CheckpointSum(v); !ok {
		return f, false
	}
	m := c.memoOf(v)
	f = Checkpoint{
		AsOf: c.head, Sum: m.sum, Gauge: c.gauge.Name(), Turns: c.turns, Tokens: c.tokens, Chars: c.chars, Call: c.lastAt.call, Newest: c.lastAt.newest,
		Groups: m.dropped.Groups, Messages: m.dropped.Messages, Calls: m.dropped.Calls, RawTokens: m.dropped.RawTokens,
		Through: m.key.through, Turn: m.turn, Changed: m.changed, Opens: m.opens,
		Events: slices.Clone(c.sources.ranges), FileTokens: c.digestMemos.fileWork, AllFiles: c.digestMemos.seen == len(c.groups),
	}
	for _, g := range m.stay {
		f.Stay = append(f.Stay, g.First)
	}
	slices.Sort(f.Stay)
	before := inOrder(m.front, m.stay)
	f.Before = len(before)
	shown := slices.Concat(before, c.groups[m.next:])
	var seqs []eventlog.Seq
	for _, g := range shown {
		for i := range g.Messages {
			seqs = append(seqs, g.Messages[i].Seqs...)
		}
		if slices.ContainsFunc(g.Calls, func(c Call) bool { return c.Repeat > 0 }) {
			return f, false
		}
	}
	f.Shown, f.ShownSum = eventlog.RangesOf(seqs), sumOf(shown)
	dropped := slices.DeleteFunc(slices.Clone(c.groups[:m.next]), func(g *Group) bool { return g.Anchor || g.Pinned || slices.Contains(m.stay, g) })
	for i, g := range dropped {
		known := DroppedGroup{g.First, g.Last, g.Tokens}
		if n := len(f.Dropped); i > 0 && len(dropped)-i >= mostDropped {
			f.Dropped[n-1].Last, f.Dropped[n-1].Tokens = max(f.Dropped[n-1].Last, g.Last), f.Dropped[n-1].Tokens+g.Tokens
			continue
		}
		f.Dropped = append(f.Dropped, known)
	}
	gone := make(map[*Group]bool, len(dropped))
	for _, g := range dropped {
		gone[g] = true
	}
	for id, i := range c.open {
		if gone[c.groups[i]] {
			f.OpenCalls = append(f.OpenCalls, id)
		}
	}
	slices.Sort(f.OpenCalls)
	for _, u := range c.names[c.nameAfter(eventlog.Seq(Stretches(c.head))*namesEvery):] {
		f.Names = append(f.Names, u.hash)
	}
	slices.Sort(f.Names)
	return f, len(f.OpenCalls) <= mostOpen && len(dropped) > 0
}

// sumOf is the SHA-256 of what distinguishes groups that were read from the same events.
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

// Begin begins an empty conversation at a checkpoint. The events of Checkpoint.Shown are appended next, and
// then Settle is called. used reports whether the whole stretches of NamesOf before it have a hash.
func (c *Conversation) Begin(f Checkpoint, used func(uint32) bool) {
	c.begun = &begun{Checkpoint: f, older: -1, used: func(h uint32) bool {
		_, ok := slices.BinarySearch(f.Names, h)
		return ok || used(h)
	}}
}

// Settle ends what Begin began. It is false where the events did not make the groups that they
// made when the whole log was read; the conversation is of no use then.
func (c *Conversation) Settle() bool {
	f := c.begun
	if f.Gauge != c.gauge.Name() || len(c.groups) < f.Before || sumOf(c.groups) != f.ShownSum || len(c.reminders) > 0 {
		return false
	}
	moved := make([]int, len(c.groups)) // from the index of a group to its new one
	all := make([]*Group, 0, len(c.groups)+len(f.Dropped))
	dropped := f.Dropped
	for i, g := range c.groups {
		for len(dropped) > 0 && dropped[0].First < g.First {
			all, dropped = append(all, dropped[0].group()), dropped[1:]
		}
		moved[i] = len(all)
		all = append(all, g)
	}
	for _, d := range dropped {
		all = append(all, d.group())
	}
	c.groups, c.ends = all, nil
	for name, i := range c.byGroupID {
		c.byGroupID[name] = moved[i]
	}
	for id, i := range c.open {
		c.open[id] = moved[i]
	}
	if c.first.group >= 0 {
		c.first.group = moved[c.first.group]
	}
	f.older = slices.IndexFunc(all, func(g *Group) bool { return g.Kind == 0 })
	c.head, c.turns, c.tokens, c.chars = f.AsOf, f.Turns, f.Tokens, f.Chars
	c.lastAt = eventTimes{call: f.Call, newest: f.Newest}
	c.sources.ranges = slices.Clone(f.Events)
	c.digestMemos.fileWork, c.digestMemos.seen = f.FileTokens, len(all)
	m := &c.digestMemos.memos[0]
	m.next, m.turn, m.changed, m.opens = c.after(f.Through), f.Turn, f.Changed, f.Opens
	m.dropped = Digest{Groups: f.Groups, Messages: f.Messages, Calls: f.Calls, RawTokens: f.RawTokens}
	for _, g := range all[:m.next] {
		switch {
		case g.Anchor || g.Pinned:
			m.front = append(m.front, g)
		case slices.Contains(f.Stay, g.First) && g.Kind != 0:
			m.stay = append(m.stay, g)
		}
	}
	f.settled = len(m.front)+len(m.stay) == f.Before
	return f.settled
}

func (d DroppedGroup) group() *Group { return &Group{First: d.First, Last: d.Last, Tokens: d.Tokens} }

// memoOf is the memo of the digest that a view shows; nil if there is none.
func (c *Conversation) memoOf(v View) *digestMemo {
	for i := range c.digestMemos.memos {
		if m := &c.digestMemos.memos[i]; m.key != (digestKey{}) && m.key.through == v.digest.Through && m.text == v.digest.Text {
			return m
		}
	}
	return nil
}

// restored is the memo of the one digest that a conversation knows which was begun at it.
func (d *digestWriter) restored(key digestKey, quoted Summary) *digestMemo {
	m := &d.memos.memos[0]
	if m.key == key {
		return m
	}
	sum := key.sum(quoted, d.boundary)
	if w := d.written; m.key == (digestKey{}) && sum == d.conv.begun.Sum && w.Sum == sum && w.AsOf > 0 && m.changed <= w.AsOf {
		m.text, m.tokens, m.summary, m.sum, m.key = w.Text, w.Tokens, w.SummaryTokens, sum, key
		return m
	}
	d.conv.missing = true
	return m
}

// needs ends the reduction where group i is needed as it is, and is one of which only the sum is known.
func (c *Conversation) needs(i int) bool {
	if c.begun != nil && i <= c.begun.older {
		c.missing = true
	}
	return c.missing
}
