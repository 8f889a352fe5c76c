package records

import (
	"slices"
	"unicode/utf8"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// Observation is what was observed of a view last: of one that grew from it, only the groups that
// came since are gone through. The zero value has observed nothing.
type Observation struct {
	conv   *reduce.Conversation
	view   reduce.View // zero where the next one is gone through from the start
	digest reduce.Digest
	at     int
	// digestChars and chars are the length of the digest and of the groups as they are shown, in
	// runes.
	digestChars, chars int
	kept, redacted     eventlog.Ranges
	pointers           Pointers
}

// Bytes is about how much memory it takes.
func (o *Observation) Bytes() int { return 16*(len(o.kept)+len(o.redacted)) + 96*len(o.pointers) }

// Observe fills in what the record says of a view of a conversation: which events
// are seen in full, which are dropped, which are shown reduced, and what that reclaimed. An
// event that is a part of several groups is shown reduced as soon as one of them is,
// or dropped while another stayed. Reminders are dropped but for those shown after the view.
// It does not go through what was dropped.
func (r *Projection) Observe(o *Observation, v reduce.View, conv *reduce.Conversation, shown []reduce.Reminder) {
	if !o.grown(v, conv) {
		o.begin(v, conv)
	}
	r.ReclaimedChars, r.ReclaimedTokens = int64(conv.Chars()-o.digestChars-o.chars), int64(conv.Tokens())-int64(v.Tokens())
	r.Pointers, r.Redacted = slices.Clip(o.pointers), slices.Clone(o.redacted)
	kept, events := o.kept, conv.Events()
	if all := conv.Reminders(); len(all) > 0 {
		seqs := events.Seqs()
		for i := range all {
			seqs = append(seqs, all[i].Seq)
		}
		events = eventlog.RangesOf(seqs)
		seqs = kept.Seqs()
		for i := range shown {
			seqs = append(seqs, shown[i].Seq)
		}
		kept = eventlog.RangesOf(seqs)
	}
	r.Kept = kept.Without(r.Redacted)
	r.Dropped = events.Without(r.Kept).Without(r.Redacted)
}

// begin observes a view from its first group on.
func (o *Observation) begin(v reduce.View, conv *reduce.Conversation) {
	*o = Observation{conv: conv, view: v}
	o.digest, o.at = v.Digest()
	o.digestChars = utf8.RuneCountInString(o.digest.Text)
	kept, redacted := o.look(v, 0)
	if conv.SharesEvents() {
		in := make(map[*reduce.Group]bool, v.Len())
		for i := range v.Len() {
			in[v.Group(i)] = v.Dropped(i) == nil
		}
		for _, seq := range kept {
			if slices.ContainsFunc(conv.Shared(seq), func(g *reduce.Group) bool { return !in[g] }) {
				redacted = append(redacted, seq)
			}
		}
		o.view = reduce.View{} // what comes may change what was shown
	}
	o.kept, o.redacted = eventlog.RangesOf(kept), eventlog.RangesOf(redacted)
}

// grown takes in the groups that a view has beside the one before; false where it does not go on
// from that, or an event comes before others that were there.
func (o *Observation) grown(v reduce.View, conv *reduce.Conversation) bool {
	digest, at := v.Digest()
	n := o.view.Len()
	if n == 0 || o.conv != conv || v.Shares(o.view) != n || o.digest != digest || o.at != at || conv.SharesEvents() {
		return false
	}
	kept, redacted := o.look(v, n)
	if !extend(&o.kept, kept) || !extend(&o.redacted, redacted) {
		return false
	}
	o.view = v
	return true
}

// extend takes in seqs after all others; false where one is not.
func extend(all *eventlog.Ranges, seqs []eventlog.Seq) bool {
	slices.Sort(seqs)
	if n := len(*all); n > 0 && len(seqs) > 0 && seqs[0] <= (*all)[n-1].To {
		return false
	}
	for _, seq := range slices.Compact(seqs) {
		all.Add(seq)
	}
	return true
}

// look goes through the groups of a view from one on: their events that are seen in full and those that
// are not. It adds their pointers and their length.
func (o *Observation) look(v reduce.View, from int) (kept, redacted []eventlog.Seq) {
	for i := from; i < v.Len(); i++ {
		g := v.Group(i)
		if left := v.Dropped(i); left != nil {
			o.chars += utf8.RuneCountInString(left.Text)
			continue
		}
		o.chars += g.Chars
		edits := v.Edits(i)
		changed := make(map[eventlog.Seq]bool, len(edits))
		for _, e := range edits {
			b := &g.Messages[e.Message].Blocks[e.Block]
			changed[b.Seq] = true
			o.pointers = append(o.pointers, Pointer{
				Seq: b.Seq, Block: b.Index, Kind: e.Kind, Reducer: e.Reducer, Reason: e.Reason, Reclaimed: b.Tokens - e.Tokens,
			})
			o.chars -= charsOf(g, e) - utf8.RuneCountInString(e.Text)
		}
		for m := range g.Messages {
			for _, seq := range g.Messages[m].Seqs {
				if changed[seq] {
					redacted = append(redacted, seq)
				} else {
					kept = append(kept, seq)
				}
			}
		}
	}
	return kept, redacted
}

// charsOf is the length of a block that was edited. A message's is known, and most
// edits are of results, which are messages of one block.
func charsOf(g *reduce.Group, e reduce.Edit) int {
	if m := &g.Messages[e.Message]; len(m.Blocks) == 1 {
		return m.Chars
	}
	return reduce.Chars(g.Messages[e.Message].Blocks[e.Block].Block)
}
