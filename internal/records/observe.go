package records

import (
	"slices"
	"unicode/utf8"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// Observe fills in what the record says of a view of a conversation: which events
// are seen in full, which are dropped, which are shown reduced, and what that reclaimed. An
// event that is a part of several groups is shown reduced as soon as one of them is,
// or dropped while another stayed. It does not go through what was dropped.
func (r *Projection) Observe(v reduce.View, conv *reduce.Conversation) {
	var kept, redacted []eventlog.Seq
	in := make(map[*reduce.Group]bool, v.Len())
	d, _ := v.Digest()
	chars := conv.Chars() - utf8.RuneCountInString(d.Text)
	for i := range v.Len() {
		g := v.Group(i)
		if left := v.Dropped(i); left != nil {
			chars -= utf8.RuneCountInString(left.Text)
			continue
		}
		in[g] = true
		chars -= g.Chars
		edits := v.Edits(i)
		changed := make([]eventlog.Seq, len(edits))
		r.Pointers = slices.Grow(r.Pointers, len(edits))
		for n, e := range edits {
			b := &g.Messages[e.Message].Blocks[e.Block]
			changed[n] = b.Seq
			r.Pointers = append(r.Pointers, Pointer{
				Seq: b.Seq, Block: b.Index, Kind: e.Kind, Reducer: e.Reducer, Reason: e.Reason, Reclaimed: b.Tokens - e.Tokens,
			})
			chars += charsOf(g, e) - utf8.RuneCountInString(e.Text)
		}
		for m := range g.Messages {
			for _, seq := range g.Messages[m].Seqs {
				if slices.Contains(changed, seq) {
					redacted = append(redacted, seq)
				} else {
					kept = append(kept, seq)
				}
			}
		}
	}
	for _, seq := range kept {
		if slices.ContainsFunc(conv.Shared(seq), func(g *reduce.Group) bool { return !in[g] }) {
			redacted = append(redacted, seq)
		}
	}
	r.ReclaimedChars, r.ReclaimedTokens = int64(chars), int64(conv.Tokens())-int64(v.Tokens())
	r.Redacted = eventlog.RangesOf(redacted)
	r.Kept = eventlog.RangesOf(kept).Without(r.Redacted)
	r.Dropped = conv.Events().Without(r.Kept).Without(r.Redacted)
}

// charsOf is the length of a block that was edited. A message's is known, and most
// edits are of results, which are messages of one block.
func charsOf(g *reduce.Group, e reduce.Edit) int {
	if m := &g.Messages[e.Message]; len(m.Blocks) == 1 {
		return m.Chars
	}
	return reduce.Chars(g.Messages[e.Message].Blocks[e.Block].Block)
}
