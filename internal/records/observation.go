package records

import (
	"slices"
	"unicode/utf8"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// Observation caches what was observed of the last view. If the next view grew from that, only its new groups must be
// looked at. The zero value has observed nothing.
type Observation struct {
	conv   *reduce.Conversation
	view   reduce.View // zero if the next view must be observed from its start
	digest reduce.Digest
	at     int
	// digestChars and chars are the lengths of the digest and of the groups as shown, in runes.
	digestChars, chars int
	kept, redacted     eventlog.Ranges
	pointers           Pointers
}

// Bytes estimates the memory that the observation takes.
func (o *Observation) Bytes() int { return 16*(len(o.kept)+len(o.redacted)) + 96*len(o.pointers) }

// Observe fills in what the record says of a view of a conversation: which events are shown in full,
// reduced or dropped, and how much that reclaimed. An event that is part of several groups counts as
// reduced if one of them is reduced, or dropped while another stayed. Reminders count as dropped unless
// they are in shown. It does not go through dropped groups.
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

// begin observes a view from its first group.
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
		o.view = reduce.View{} // a later group may change how a shared event is shown
	}
	o.kept, o.redacted = eventlog.RangesOf(kept), eventlog.RangesOf(redacted)
}

// grown observes the groups that the view has in addition to the one observed before. It is false if the
// view does not extend that one, or new events do not come after all observed ones.
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

// extend adds seqs to all; false if one does not come after those that are there.
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

// look observes the groups of a view from index from on. It returns their events that are shown in full and
// those that are edited, and adds up their pointers and length.
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

// charsOf returns the length of an edited block, in runes. The length of a message is stored, and most edits are
// of results, which are messages of one block.
func charsOf(g *reduce.Group, e reduce.Edit) int {
	if m := &g.Messages[e.Message]; len(m.Blocks) == 1 {
		return m.Chars
	}
	return reduce.Chars(g.Messages[e.Message].Blocks[e.Block].Block)
}
