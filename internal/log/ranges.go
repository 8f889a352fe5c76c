package log

import (
	"cmp"
	"slices"
)

// Place is the place of a block in the log.
type Place struct {
	Seq   Seq
	Block int
}

// Compare orders places by seq, then by block.
func (p Place) Compare(q Place) int {
	return cmp.Or(cmp.Compare(p.Seq, q.Seq), cmp.Compare(p.Block, q.Block))
}

// Range is a run of seqs, From and To included.
type Range struct{ From, To Seq }

// Ranges are runs in ascending order, with a gap between any two.
type Ranges []Range

// RangesOf returns the runs of some seqs. It sorts seqs in place.
func RangesOf(seqs []Seq) Ranges {
	slices.Sort(seqs)
	var out Ranges
	for _, s := range slices.Compact(seqs) {
		out.Add(s)
	}
	return out
}

// Add adds a seq, which must be greater than all seqs of the runs.
func (all *Ranges) Add(seq Seq) {
	if n := len(*all); n > 0 && (*all)[n-1].To+1 == seq {
		(*all)[n-1].To = seq
		return
	}
	*all = append(*all, Range{seq, seq})
}

// With returns a copy of the runs that also has the seqs of r.
func (all Ranges) With(r Range) Ranges {
	var out Ranges
	for i, one := range all {
		switch {
		case one.To+1 < r.From:
			out = append(out, one)
		case r.To+1 < one.From:
			return append(append(out, r), all[i:]...)
		default:
			r = Range{min(r.From, one.From), max(r.To, one.To)}
		}
	}
	return append(out, r)
}

// Has reports whether a seq is in one of the runs.
func (all Ranges) Has(seq Seq) bool { return all.Around(seq) != Range{} }

// Around returns the run that a seq is in; zero if it is in none.
func (all Ranges) Around(seq Seq) Range {
	i, _ := slices.BinarySearchFunc(all, seq, func(r Range, seq Seq) int { return cmp.Compare(r.To, seq) })
	if i == len(all) || all[i].From > seq {
		return Range{}
	}
	return all[i]
}

// Len returns how many seqs are in the runs.
func (all Ranges) Len() int {
	n := 0
	for _, r := range all {
		n += int(r.To-r.From) + 1
	}
	return n
}

// Seqs returns the seqs of the runs, in ascending order.
func (all Ranges) Seqs() []Seq {
	var out []Seq
	for _, r := range all {
		for s := r.From; s <= r.To; s++ {
			out = append(out, s)
		}
	}
	return out
}

// UpTo returns a copy of the runs without seq 0 and without the seqs after head.
func (all Ranges) UpTo(head Seq) (out Ranges) {
	for _, r := range all {
		if r.From, r.To = max(r.From, 1), min(r.To, head); r.From <= r.To {
			out = append(out, r)
		}
	}
	return out
}

// Without returns the seqs of the runs that are not in b.
func (all Ranges) Without(b Ranges) Ranges {
	var out Ranges
	for _, r := range all {
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
