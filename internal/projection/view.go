package projection

import (
	"slices"
	"unicode/utf8"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// Raw is the projection policy that shows the reduced view as it is.
const Raw = "raw"

// Observe fills in what the record says of a view: which events are seen in
// full, which left, which are shown reduced, and what that reclaimed. An event
// that is a part of several groups is shown reduced as soon as one of them is, or
// left while another stayed.
func (r *Record) Observe(v reduce.View, groups []*reduce.Group) {
	var kept, dropped, redacted []eventlog.Seq
	in := make(map[eventlog.Seq]bool, v.Len())
	for i := range v.Len() {
		g := v.Group(i)
		in[g.First] = true
		changed := map[eventlog.Seq]bool{}
		for _, e := range v.Edits(i) {
			b := g.Messages[e.Message].Blocks[e.Block]
			changed[b.Seq] = true
			r.Pointers = append(r.Pointers, Pointer{
				Seq: b.Seq, Block: b.Index, Kind: e.Kind, Reducer: e.Reducer, Reason: e.Reason, Reclaimed: b.Tokens - e.Tokens,
			})
			r.ReclaimedChars += int64(reduce.Chars(b.Block) - utf8.RuneCountInString(e.Text))
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
	var raw uint64
	for _, g := range groups {
		raw += g.Tokens
		if in[g.First] {
			continue
		}
		for m := range g.Messages {
			dropped = append(dropped, g.Messages[m].Seqs...)
		}
		r.ReclaimedChars += int64(g.Chars)
	}
	d, _ := v.Digest()
	r.ReclaimedChars -= int64(utf8.RuneCountInString(d.Text))
	r.ReclaimedTokens = int64(raw) - int64(v.Tokens())
	redacted = append(redacted, both(kept, dropped)...)
	kept, dropped = without(kept, redacted), without(dropped, redacted)
	r.Kept, r.Dropped, r.Redacted = ranges(kept), ranges(dropped), ranges(redacted)
}

// both lists the seqs of a that are in b; it sorts b.
func both(a, b []eventlog.Seq) []eventlog.Seq {
	slices.Sort(b)
	var out []eventlog.Seq
	for _, s := range a {
		if _, ok := slices.BinarySearch(b, s); ok {
			out = append(out, s)
		}
	}
	return out
}

// without takes the seqs of b out of a; it sorts b.
func without(a, b []eventlog.Seq) []eventlog.Seq {
	slices.Sort(b)
	return slices.DeleteFunc(a, func(s eventlog.Seq) bool {
		_, ok := slices.BinarySearch(b, s)
		return ok
	})
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
