package reduce

import (
	"cmp"
	"maps"
	"slices"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/fileview"
	"github.com/contextd/contextd/internal/ledger"
	eventlog "github.com/contextd/contextd/internal/log"
)

// digestKey is everything but the log that a digest depends on.
type digestKey struct {
	through eventlog.Seq
	target  uint64
	summary string
	policy  Collapse
	recall  Recall
	// prose is the limit on the text of a caller's summary.
	prose uint64
	// decided is what callers decided. Each is made once and never changed.
	decided *Decided
	// protection is what stays in the run because of its results, and lateAfter the event after which
	// late ones keep their groups; 0 where none is so late.
	protection protectionKey
	lateAfter  eventlog.Seq
}

// digestMemo keeps what was gathered from the front of the conversation, so that
// a longer run reads only what is new.
type digestMemo struct {
	next int    // index of the first group not taken in
	turn uint32 // of the last group taken in
	// read is the index of the first group whose texts were not read. Only who writes a digest
	// needs them.
	read  int
	index *ledger.Index
	// sorted is that of the policy, and quotes whether its index quotes arguments.
	sorted, quotes bool
	files          *ledger.Files
	calls          *ledger.Calls
	plan           *ledger.Plan
	failed         *ledger.Failures
	views          *fileview.Views
	// said are the quotations of what users said.
	said Memo[budget.Piece]
	// front are the anchored and pinned groups, which stay; humans those with a human's words,
	// which may stay; standing the newest of each name, which stay, too. dropped counts all groups
	// but those of front.
	front, humans []*Group
	standing      map[string]*Group
	// notes are what the runtime put in that is not standing. lastUser is the first event
	// of the newest group of a user's messages, whoever wrote them.
	notes    []*Group
	lastUser eventlog.Seq
	dropped  Digest
	opens    eventlog.Seq // see View

	// changed is the newest event that changed a group of the run.
	changed eventlog.Seq

	// text is the digest for key, tokens its size, summary that of the summary in it, and
	// stay the groups that stay beside it but for the front; key is zero before the first.
	key     digestKey
	sum     [32]byte // see digestKey.sum
	text    string
	tokens  uint64
	summary uint64
	stay    []*Group
	used    uint64 // when it was asked for, by the clock of digestMemos
}

// digestMemos are two memos, because there may be two runs in use: the one that is
// dropped, and a longer one that is tried and given up again.
type digestMemos struct {
	gauge budget.Gauge
	memos [2]digestMemo
	clock uint64
	// fileWork is the size in tokens of the first groups that worked on files, and seen how
	// many groups were looked at for it.
	fileWork uint64
	seen     int
}

// mostOfFiles is the most that the views of the files in some groups can take, in tokens, and
// up to limit: it looks at no more groups than it takes to reach that.
func (all *digestMemos) mostOfFiles(groups []*Group, limit uint64) uint64 {
	for ; all.seen < len(groups) && all.fileWork < limit; all.seen++ {
		g := groups[all.seen]
		if slices.ContainsFunc(g.Calls, func(c Call) bool { return len(fileview.Operations(c.Name, c.Arguments)) > 0 }) {
			all.fileWork += g.Tokens
		}
	}
	return min(all.fileWork, limit)
}

func newDigestMemos(gauge budget.Gauge) digestMemos {
	return digestMemos{gauge: gauge, memos: [2]digestMemo{newDigestMemo(gauge), newDigestMemo(gauge)}}
}

func newDigestMemo(gauge budget.Gauge) digestMemo {
	return digestMemo{
		index: ledger.NewIndex(gauge), files: ledger.NewFiles(gauge), calls: ledger.NewCalls(gauge), plan: ledger.NewPlan(gauge), failed: ledger.NewFailures(gauge),
		views: fileview.NewViews(), standing: map[string]*Group{},
	}
}

// quote keeps what quoteUser returns.
func (m *digestMemo) quote(g *Group, gauge budget.Gauge) budget.Piece {
	kept := m.said.Of(g)
	if kept.Text == "" {
		*kept = quoteUser(g, gauge)
	}
	return *kept
}

// take returns a memo that has gathered the run of the key and nothing else, or a part of
// the run where it ended before.
func (all *digestMemos) take(groups []*Group, key digestKey, ended func() error) *digestMemo {
	m := all.pick(groups, key)
	if m.next == 0 {
		if m.sorted, m.quotes = key.policy.sorted(), key.policy.quotesArguments(); m.quotes {
			m.index.QuoteArguments()
		}
	}
	all.clock++
	m.used = all.clock
	if m.key != key {
		m.key = digestKey{} // its digest is of less than it is about to gather
	}
	for m.next < len(groups) && groups[m.next].First <= key.through && ended() == nil {
		m.gather(groups[m.next])
		m.next++
	}
	return m
}

// pick prefers the memo that knows the text, then the one that has least to gather.
func (all *digestMemos) pick(groups []*Group, key digestKey) *digestMemo {
	var best *digestMemo
	for i := range all.memos {
		m := &all.memos[i]
		switch {
		case m.key == key:
			return m
		case m.next > 0 && (groups[m.next-1].First > key.through || m.sorted != key.policy.sorted() || m.quotes != key.policy.quotesArguments()):
			continue // it has gathered too much, or otherwise
		case best == nil || m.next > best.next:
			best = m
		}
	}
	if best == nil {
		best = &all.memos[0]
		if all.memos[1].used < best.used {
			best = &all.memos[1]
		}
		*best = newDigestMemo(all.gauge)
	}
	return best
}

// forget drops what was gathered from group i.
func (all *digestMemos) forget(i int) {
	if i < all.seen {
		all.seen, all.fileWork = 0, 0
	}
	for n := range all.memos {
		if i < all.memos[n].next {
			all.memos[n] = newDigestMemo(all.gauge)
		}
	}
}

// gather takes in one group of the run, but for its texts.
func (m *digestMemo) gather(g *Group) {
	m.turn = g.Turn
	m.changed = max(m.changed, g.changed)
	if g.Opens {
		m.opens = g.First
	}
	if g.Standing != "" {
		delete(m.standing, g.Standing)
	}
	if g.Kind == KindUser {
		m.lastUser = g.First
	}
	if g.Anchor || g.Pinned {
		m.front = append(m.front, g)
		return
	}
	switch {
	case g.Human > 0:
		m.humans = append(m.humans, g)
	case g.Standing != "":
		m.standing[g.Standing] = g
	case g.Kind == KindUser:
		m.notes = append(m.notes, g)
	}
	m.dropped.add(g)
}

// readTexts reads the texts of the groups that were taken in.
func (m *digestMemo) readTexts(groups []*Group, ended func() error) {
	for ; m.read < m.next && ended() == nil; m.read++ {
		if g := groups[m.read]; !g.Anchor && !g.Pinned {
			m.readGroup(g)
		}
	}
}

func (m *digestMemo) readGroup(g *Group) {
	if m.sorted {
		m.index.From("messages", "")
	}
	for i := range g.Messages {
		for _, b := range g.Messages[i].Blocks {
			switch b := b.Block.(type) {
			case eventlog.Text:
				if g.Kind == KindTurn {
					m.index.AddOwn(b.Text)
				} else {
					m.index.AddText(b.Text)
				}
			case eventlog.Thinking:
				m.index.AddOwn(b.Text)
			}
		}
	}
	for i := range g.Calls {
		c := &g.Calls[i]
		arguments, body := c.Arguments, c.Body
		if m.sorted {
			arguments, body = ledger.Decode(arguments), ledger.Decode(body)
			m.index.From(ledger.Place(c.Name, c.Arguments), c.pointer())
			m.open(c)
		}
		m.index.AddArguments(arguments)
		m.index.AddText(body)
		operations := fileview.Operations(c.Name, c.Arguments)
		m.files.Add(c.Name, c.Arguments, operations)
		m.views.Add(fileview.Call{Operations: operations, Body: c.Body, Failed: c.Interrupted || c.IsError, Pointer: Pointer(c.Seq, c.Block)})
	}
	g.list(m.calls, m.sorted)
}

// open takes in what a call says of what is open: a plan, a failure, a repair.
func (m *digestMemo) open(c *Call) {
	if c.Interrupted {
		return
	}
	m.failed.Add(c.Name, c.Arguments, c.IsError, c.Body, c.pointer())
	if !c.IsError {
		m.plan.Add(c.Name, c.Arguments, c.Body, c.pointer())
	}
}

// mostStanding is how many standing texts stay beside a run.
const mostStanding = 8

// keepStanding are the standing texts that stay: the plan, the scratchpad, and the newest of
// the others, and none where the digest is written for no target at all.
func (m *digestMemo) keepStanding(b budget.Budget) []*Group {
	if b.Target == 0 {
		return nil
	}
	all := slices.SortedFunc(maps.Values(m.standing), func(a, b *Group) int { return cmp.Compare(a.First, b.First) })
	from := max(0, len(all)-mostStanding)
	live := slices.DeleteFunc(slices.Clone(all[:from]), func(g *Group) bool { return !g.isLive() })
	return append(live, all[from:]...)
}

// keepNotes parts the notes in those that stay and those that are quoted: the newest stays
// where nothing with the user's role came after it, because it is where the tool-use loop
// begins that may still be open.
func (m *digestMemo) keepNotes(b budget.Budget) (stay, quoted []*Group) {
	last := len(m.notes) - 1
	if b.Target == 0 || last < 0 || m.notes[last].First != m.lastUser {
		return nil, m.notes
	}
	return m.notes[last:], m.notes[:last]
}

// keepHumans parts the humans in those that stay beside a run through an event and those
// that are quoted. What was said since stays, and so do the newest words before, and of
// those before them as many as fit in their share. A late part of a group changes nothing
// about others.
func (m *digestMemo) keepHumans(b budget.Budget, through eventlog.Seq) (stay, quoted []*Group) {
	all := make([]upTo, len(m.humans))
	for i, g := range m.humans {
		all[i] = g.upTo(through)
	}
	slices.SortStableFunc(all, func(a, b upTo) int { return cmp.Compare(b.human, a.human) })
	limit, newest, full := b.Share(userShare), true, false
	for _, g := range all {
		kept := g.human > 0 && (newest || !full && g.tokens <= limit)
		switch {
		case kept:
			limit -= min(limit, g.tokens)
			newest = false
		case g.human > 0:
			full = true
		}
		if kept || g.group.Human > through {
			stay = append(stay, g.group)
		} else {
			quoted = append(quoted, g.group)
		}
	}
	slices.Reverse(quoted)
	return stay, quoted
}

// upTo is a group as it was when an event was the newest.
type upTo struct {
	group  *Group
	human  eventlog.Seq // 0 if no human had said anything in it
	tokens uint64
}

func (g *Group) upTo(through eventlog.Seq) upTo {
	u := upTo{group: g}
	for i := range g.Messages {
		m := &g.Messages[i]
		if len(m.Seqs) == 0 || m.Seqs[0] > through {
			continue
		}
		u.tokens += m.Tokens
		if m.Human {
			u.human = max(u.human, m.Seqs[0])
		}
	}
	return u
}
