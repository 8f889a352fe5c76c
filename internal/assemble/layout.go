package assemble

import (
	"slices"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
)

// layout is a view as it was laid out in a format: the fragments of its groups, the messages made
// of them and the state of their hash. It grows with the view. What was made of it before stays as
// it was: its slices are only appended to.
type layout struct {
	id     int
	view   reduce.View
	digest reduce.Digest
	at     int // the group that the digest comes before
	// placed says that the digest is among the fragments, as so many of them.
	placed          bool
	digestFragments int
	// fragments are those of all groups, and starts where each group's begin.
	fragments []render.Fragment
	starts    []int
	tiers     map[budget.Tier]uint64
	bytes     int
	// messages are made of the fragments. hash is that of the first hashed of them.
	messages []Message
	hash     records.Hasher
	hashed   int
	// described is how many of the first media the messages describe.
	described int
	// old is where fragments are taken from of groups that are shown as they were in it.
	old *layout
}

// grows reports whether a view goes on from the one that is laid out.
func (l *layout) grows(v reduce.View) bool {
	digest, at := v.Digest()
	return l.view.Len() > 0 && v.Shares(l.view) == l.view.Len() && digest == l.digest && at == l.at
}

// renewed is an empty layout for a view, which takes from l what stays as it was. l may be nil.
func (l *layout) renewed(v reduce.View, id int) *layout {
	digest, at := v.Digest()
	if l != nil {
		l.old = nil
	}
	return &layout{id: id, digest: digest, at: at, hash: records.NewHasher(), tiers: map[budget.Tier]uint64{budget.TierSummary: digest.Tokens}, old: l}
}

// take lays out the groups of a view that are new to the layout; false where the view has ended.
func (l *layout) take(f *render.Format, v reduce.View) bool {
	from := l.view.Len()
	old := 0
	place := func() {
		if !l.placed && l.digest.Through > 0 {
			all := f.Fragments(render.DigestMessage(l.digest))
			l.digestFragments = len(all)
			l.add(all)
		}
		l.placed = true
	}
	for i := from; i < v.Len(); i++ {
		if v.Ended() != nil {
			return false
		}
		if i == l.at {
			place()
		}
		l.starts = append(l.starts, len(l.fragments))
		if same := l.old.find(v, i, &old); same != nil {
			l.add(same)
			continue
		}
		for _, m := range render.GroupMessages(v, i) {
			l.add(f.Fragments(m))
		}
	}
	if l.at == v.Len() {
		place()
	}
	for tier, tokens := range v.TierTokensFrom(from) {
		l.tiers[tier] += tokens
	}
	l.view, l.old = v, nil
	return true
}

func (l *layout) add(fragments []render.Fragment) {
	l.fragments = append(l.fragments, fragments...)
	for i := range fragments {
		l.bytes += len(fragments[i].JSON) + len(fragments[i].Elsewhere) + 2*messageOverhead
	}
}

// find returns the fragments of a view's group where the layout has it under the same edits. The
// groups are asked for in their order; at is how far the layout was gone through.
func (l *layout) find(v reduce.View, i int, at *int) []render.Fragment {
	if l == nil {
		return nil
	}
	g := v.Group(i)
	for *at < l.view.Len() && l.view.Group(*at).First < g.First {
		*at++
	}
	n := *at
	if n == l.view.Len() || l.view.Group(n) != g || l.view.Dropped(n) != v.Dropped(i) || !slices.Equal(l.view.Edits(n), v.Edits(i)) {
		return nil
	}
	end := len(l.fragments)
	if n+1 < len(l.starts) {
		end = l.starts[n+1]
	}
	if n+1 == l.at && l.digest.Through > 0 { // the digest is between
		end -= l.digestFragments
	}
	return l.fragments[l.starts[n]:end]
}

// rewritten is set where others of the first media are described than before: the messages have
// other bytes.
func (l *layout) rewritten(id, described int) {
	l.id, l.described, l.hash, l.hashed = id, described, records.NewHasher(), 0
}

// encoding are the messages of the layout, with reminders after them.
func (l *layout) encoding(f *render.Format, reminders []reduce.Reminder) encoding {
	if f.OneByOne {
		l.messages = append(l.messages, f.Join(l.fragments[len(l.messages):])...)
	} else {
		l.messages = f.Join(l.fragments)
	}
	// The last message may still take up what follows.
	for ; l.hashed < len(l.messages)-1; l.hashed++ {
		l.hash.Add(l.messages[l.hashed].JSON)
	}
	out := encoding{format: f, fragments: l.fragments, messages: l.messages, tiers: l.tiers, layout: l.id, body: max(0, len(l.messages)-1)}
	if len(reminders) == 0 {
		out.hash = hashAfter(l.hash, l.messages[l.hashed:])
		return out
	}
	var after []render.Fragment
	for _, r := range reminders {
		after = append(after, f.Fragments(render.ReminderMessage(r))...)
	}
	out.fragments = slices.Concat(l.fragments, after)
	if f.OneByOne {
		out.messages = slices.Concat(l.messages, f.Join(after))
	} else {
		out.messages = f.Join(out.fragments)
	}
	if f.Described(out.fragments) != l.described { // with the reminders there is too much
		out.hash, out.layout, out.body = hashOf(out.messages), 0, 0
		return out
	}
	out.hash = hashAfter(l.hash, out.messages[min(l.hashed, len(out.messages)):])
	return out
}

// hashAfter is the hash of messages after those that a hasher has taken in.
func hashAfter(h records.Hasher, messages []Message) string {
	h = h.Clone()
	for i := range messages {
		h.Add(messages[i].JSON)
	}
	return h.Sum()
}
