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

// digestKey has everything that a digest depends on, except the log.
type digestKey struct {
	through eventlog.Seq
	target  uint64
	summary string
	policy  Collapse
	recall  Recall
	// prose is the size limit of the text of a caller's summary.
	prose uint64
	// decided is what callers decided. It is immutable, so the pointer identifies it.
	decided *Decided
	// protection and lateAfter decide which groups of the run stay because of their results. lateAfter is
	// State.LateAfter, or 0 if no result came after it.
	protection protectionKey
	lateAfter  eventlog.Seq
}

// digestMemo caches what a digest needs of the first groups of the conversation, so that a longer run reads only its
// new groups.
type digestMemo struct {
	next int    // index of the first group that was not gathered
	turn uint32 // of the last group that was gathered
	// read is the index of the first group whose texts were not read. They are read only when a digest must be
	// written.
	read  int
	index *ledger.Index
	// sorted says that the policy's ledger is sorted, and quotes that its index quotes arguments.
	sorted, quotes bool
	files          *ledger.Files
	calls          *ledger.Calls
	plan           *ledger.Plan
	failed         *ledger.Failures
	views          *fileview.Views
	// said caches the quotations of user messages.
	said Memo[budget.Piece]
	// front are the anchored and pinned groups, which stay in view. humans are the groups with a human's
	// words, and standing the newest standing group of each name: of these, some stay. dropped counts all
	// groups but front.
	front, humans []*Group
	standing      map[string]*Group
	// notes are the injected groups that are not standing. lastUser is the first event of the newest group with a
	// message of the user's role, whoever wrote it.
	notes    []*Group
	lastUser eventlog.Seq
	dropped  Digest
	opens    eventlog.Seq // see View

	// changed is the newest event that changed a group of the run.
	changed eventlog.Seq

	// text is the digest for key, tokens its size, and summary the part of it that the quoted summary takes.
	// stay are the groups of the run, other than front, that stay in view. key is zero while there is no
	// digest.
	key     digestKey
	sum     [32]byte // see digestKey.sum
	text    string
	tokens  uint64
	summary uint64
	stay    []*Group
	used    uint64 // the value of digestMemos.clock when the memo was last used
}

// digestMemos has two memos, because a reduction may use two runs: the one in force, and a longer one that it tries
// and may discard.
type digestMemos struct {
	gauge budget.Gauge
	memos [2]digestMemo
	clock uint64
	// fileWork is the size, in tokens, of those of the first seen groups that worked on files.
	fileWork uint64
	seen     int
}

// mostOfFiles returns an upper bound, in tokens, on the file views of some groups, or limit if that is less. It
// reads only as many groups as it takes to reach limit.
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

// quote is quoteUser with a cache.
func (m *digestMemo) quote(g *Group, gauge budget.Gauge) budget.Piece {
	kept := m.said.Of(g)
	if kept.Text == "" {
		*kept = quoteUser(g, gauge)
	}
	return *kept
}

// take returns a memo that has gathered exactly the run of the key, or a part of it if ended stopped it.
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
		m.key = digestKey{} // its digest does not cover what is gathered next
	}
	for m.next < len(groups) && groups[m.next].First <= key.through && ended() == nil {
		m.gather(groups[m.next])
		m.next++
	}
	return m
}

// pick returns the memo that has the digest of the key or, if none has, the one that must gather the fewest groups.
func (all *digestMemos) pick(groups []*Group, key digestKey) *digestMemo {
	var best *digestMemo
	for i := range all.memos {
		m := &all.memos[i]
		switch {
		case m.key == key:
			return m
		case m.next > 0 && (groups[m.next-1].First > key.through || m.sorted != key.policy.sorted() || m.quotes != key.policy.quotesArguments()):
			continue // it has gathered more than the run, or under other settings
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

// forget drops the memos that gathered group i, which is about to change.
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

// gather adds one group of the run, without reading its texts.
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

// readTexts reads the texts of the groups that were gathered.
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

// open adds what a call shows of open work: a plan, a failure, or the repair of a failure.
func (m *digestMemo) open(c *Call) {
	if c.Interrupted {
		return
	}
	m.failed.Add(c.Name, c.Arguments, c.IsError, c.Body, c.pointer())
	if !c.IsError {
		m.plan.Add(c.Name, c.Arguments, c.Body, c.pointer())
	}
}

// mostStanding is how many standing texts of a run stay in view.
const mostStanding = 8

// keepStanding returns the standing texts that stay in view: the plan, the scratchpad, and the newest of the others.
// With a digest for a target of 0, none stays.
func (m *digestMemo) keepStanding(b budget.Budget) []*Group {
	if b.Target == 0 {
		return nil
	}
	all := slices.SortedFunc(maps.Values(m.standing), func(a, b *Group) int { return cmp.Compare(a.First, b.First) })
	from := max(0, len(all)-mostStanding)
	live := slices.DeleteFunc(slices.Clone(all[:from]), func(g *Group) bool { return !g.isLive() })
	return append(live, all[from:]...)
}

// keepNotes divides the notes into those that stay in view and those that the digest quotes. The newest stays if no
// message with the user's role came after it, because a tool-use loop that began there may still be open.
func (m *digestMemo) keepNotes(b budget.Budget) (stay, quoted []*Group) {
	last := len(m.notes) - 1
	if b.Target == 0 || last < 0 || m.notes[last].First != m.lastUser {
		return nil, m.notes
	}
	return m.notes[last:], m.notes[:last]
}

// keepHumans divides the groups with a human's words into those that stay in view and those that the digest quotes.
// Groups with a human's words after the run's end stay, as do the newest group before it and as many older ones as
// fit in userShare. Events that join a group after the run's end do not change which others stay.
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

// upTo describes a group as it was when an earlier event was the newest of the log.
type upTo struct {
	group  *Group
	human  eventlog.Seq // as Group.Human was then
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
