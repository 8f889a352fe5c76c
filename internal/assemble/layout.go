package assemble

import (
	"slices"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
)

// layout is a view laid out in a provider's format: the fragments of its groups, the messages made of them,
// and the state of their hash. It grows with the view: its slices are only appended to, so encodings made
// before stay valid.
type layout struct {
	id     int
	view   reduce.View
	digest reduce.Digest
	at     int // index of the group before which the digest is placed
	// placed says that the place of the digest was reached; it takes digestFragments of the fragments.
	placed          bool
	digestFragments int
	// fragments are those of all groups; starts has the index of each group's first fragment.
	fragments []render.Fragment
	starts    []int
	tiers     map[budget.Tier]uint64
	bytes     int
	// messages are made of the fragments. hash covers the first hashed of them.
	messages []Message
	hash     records.Hasher
	hashed   int
	// described is the format's Described count when the messages were made: a change rewrites messages.
	described int
	// ended is why the computation on the newest view should stop; nil if it should go on.
	ended func() error
	// old is the layout before this one: fragments of groups that did not change are copied from it.
	old *layout
}

// grows reports whether the view only adds groups to the one that is laid out.
func (l *layout) grows(v reduce.View) bool {
	digest, at := v.Digest()
	return l.view.Len() > 0 && v.Shares(l.view) == l.view.Len() && digest == l.digest && at == l.at
}

// renewed returns an empty layout for a view. It copies from l the groups that did not change. l may be nil.
func (l *layout) renewed(v reduce.View, id int) *layout {
	digest, at := v.Digest()
	if l != nil {
		l.old = nil
	}
	next := &layout{id: id, digest: digest, at: at, hash: records.NewHasher(), tiers: map[budget.Tier]uint64{budget.TierSummary: digest.Tokens}, old: l}
	next.ended = func() error { return next.view.Ended() }
	return next
}

// layOut lays out the groups that the view has and the layout has not. It returns false if the view's
// computation was ended halfway.
func (l *layout) layOut(f *render.Format, v reduce.View) bool {
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
		l.bytes += fragments[i].Bytes() + 2*messageOverhead
	}
}

// find returns the fragments of group i of view v if this layout has that group with the same edits, else
// nil. Calls must come in the order of the groups; at is the caller's cursor in this layout.
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
	if n+1 == l.at && l.digest.Through > 0 { // the digest's fragments come before the next group
		end -= l.digestFragments
	}
	return l.fragments[l.starts[n]:end]
}

// rewritten starts the hash again under a new id, because the format describes a different number of media
// now and so old messages have different bytes.
func (l *layout) rewritten(id, described int) {
	l.id, l.described, l.hash, l.hashed = id, described, records.NewHasher(), 0
}

// encoding returns the messages of the layout, followed by reminders.
func (l *layout) encoding(f *render.Format, reminders []reduce.Reminder) encoding {
	if f.OneByOne {
		l.messages = append(l.messages, f.Join(l.fragments[len(l.messages):])...)
	} else {
		l.messages = f.Join(l.fragments)
	}
	// The last message is not hashed: later fragments may still be joined to it.
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
		after = append(after, f.Fragments(render.ReminderMessage(l.view, r))...)
	}
	out.fragments = slices.Concat(l.fragments, after)
	if f.OneByOne {
		out.messages = slices.Concat(l.messages, f.Join(after))
	} else {
		out.messages = f.Join(out.fragments)
	}
	if f.Described(out.fragments, l.ended) != l.described { // the reminders change which media are described
		out.hash, out.layout, out.body = hashOf(out.messages), 0, 0
		return out
	}
	out.hash = hashAfter(l.hash, out.messages[min(l.hashed, len(out.messages)):])
	return out
}

// hashAfter returns the hash of what h has hashed already, followed by messages. It does not change h.
func hashAfter(h records.Hasher, messages []Message) string {
	h = h.Clone()
	for i := range messages {
		h.Add(messages[i].JSON)
	}
	return h.Sum()
}
