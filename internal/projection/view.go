package projection

import (
	"slices"
	"unicode/utf8"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// Observe fills in what the record says of a view of a conversation: which events
// are seen in full, which left, which are shown reduced, and what that reclaimed. An
// event that is a part of several groups is shown reduced as soon as one of them is,
// or left while another stayed. It does not go through what left.
func (r *Record) Observe(v reduce.View, conv *reduce.Conversation) {
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
	r.Redacted = ranges(redacted)
	r.Kept = without(ranges(kept), r.Redacted)
	said := make([]Range, len(conv.Said()))
	for i, run := range conv.Said() {
		said[i] = Range(run)
	}
	r.Dropped = without(without(said, r.Kept), r.Redacted)
}

// charsOf is the length of a block that was edited. A message's is known, and most
// edits are of results, which are messages of one block.
func charsOf(g *reduce.Group, e reduce.Edit) int {
	if m := &g.Messages[e.Message]; len(m.Blocks) == 1 {
		return m.Chars
	}
	return reduce.Chars(g.Messages[e.Message].Blocks[e.Block].Block)
}

// without takes the seqs of b out of a. Both are in order.
func without(a, b []Range) []Range {
	var out []Range
	for _, r := range a {
		for len(b) > 0 && b[0].To < r.From {
			b = b[1:]
		}
		for n := 0; n < len(b) && b[n].From <= r.To; n++ {
			if r.From < b[n].From {
				out = append(out, Range{r.From, b[n].From - 1})
			}
			r.From = b[n].To + 1
		}
		if r.From <= r.To {
			out = append(out, r)
		}
	}
	return out
}

// ranges joins neighbouring seqs; it sorts them.
func ranges(seqs []eventlog.Seq) []Range {
	slices.Sort(seqs)
	seqs = slices.Compact(seqs)
	var out []Range
	for _, s := range seqs {
		if n := len(out); n > 0 && out[n-1].To+1 == s {
			out[n-1].To = s
		} else {
			out = append(out, Range{s, s})
		}
	}
	return out
}

// Seqs lists the seqs of ranges.
func Seqs(all []Range) []eventlog.Seq {
	var out []eventlog.Seq
	for _, r := range all {
		for s := r.From; s <= r.To; s++ {
			out = append(out, s)
		}
	}
	return out
}
