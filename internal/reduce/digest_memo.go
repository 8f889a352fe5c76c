package reduce

import (
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/ledger"
	eventlog "github.com/contextd/contextd/internal/log"
)

// digestKey is everything but the log that a digest depends on.
type digestKey struct {
	through eventlog.Seq
	target  uint64
	summary string
	policy  Collapse
}

// digestMemo keeps what was gathered from the front of the conversation, so that
// a longer run reads only what is new.
type digestMemo struct {
	next  int    // index of the first group not taken in
	turn  uint32 // of the last group taken in
	index ledger.Index
	files ledger.Files
	calls []ledger.Call
	// front are the anchored and pinned groups, which stay; users those that may
	// stay. left counts all others and the users.
	front, users []*Group
	left         Digest

	// text is the digest for key, and tokens its size; key is zero before the first.
	key    digestKey
	text   string
	tokens uint64
	used   uint64 // when it was asked for, by the clock of digestMemos
}

// digestMemos are two memos, because there may be two runs in use: the one that
// left, and a longer one that is tried and given up again.
type digestMemos struct {
	memos [2]digestMemo
	clock uint64
}

// take returns a memo that has gathered the run of the key and nothing else.
func (all *digestMemos) take(groups []*Group, key digestKey) *digestMemo {
	m := all.pick(groups, key)
	all.clock++
	m.used = all.clock
	for m.next < len(groups) && groups[m.next].First <= key.through {
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
		case m.next > 0 && groups[m.next-1].First > key.through:
			continue // it has gathered too much
		case best == nil || m.next > best.next:
			best = m
		}
	}
	if best == nil {
		best = &all.memos[0]
		if all.memos[1].used < best.used {
			best = &all.memos[1]
		}
		*best = digestMemo{}
	}
	return best
}

// forget drops what was gathered from group i.
func (all *digestMemos) forget(i int) {
	for n := range all.memos {
		if i < all.memos[n].next {
			all.memos[n] = digestMemo{}
		}
	}
}

// gather takes in one group of the run.
func (m *digestMemo) gather(g *Group) {
	m.turn = g.Turn
	if g.Anchor || g.Pinned {
		m.front = append(m.front, g)
		return
	}
	if g.Kind == KindUser {
		m.users = append(m.users, g)
	}
	m.left.leave(g)
	for i := range g.Messages {
		for _, b := range g.Messages[i].Blocks {
			switch b := b.Block.(type) {
			case eventlog.Text:
				m.index.AddText(b.Text)
			case eventlog.Thinking:
				m.index.AddText(b.Text)
			}
		}
	}
	for i := range g.Calls {
		c := &g.Calls[i]
		m.index.AddArguments(c.Arguments)
		m.index.AddText(c.Body)
		m.files.Add(c.Name, c.Arguments)
		m.calls = append(m.calls, c.entry())
	}
}

// keepUsers returns the index in users from which on they stay verbatim: the newest
// message, unless it alone would take half of the target, and of those before it as
// many as fit in their share.
func (m *digestMemo) keepUsers(b budget.Budget) int {
	limit := b.Share(userShare)
	for keep := len(m.users); ; keep-- {
		if keep == 0 {
			return 0
		}
		g := m.users[keep-1]
		if newest := keep == len(m.users); g.Tokens > limit && !(newest && g.Tokens < b.Target/2) {
			return keep
		}
		limit -= min(limit, g.Tokens)
	}
}
