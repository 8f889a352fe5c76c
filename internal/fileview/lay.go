package fileview

import (
	"slices"
	"sort"
)

// show records a region that a call showed or wrote, in the place of the lines known there.
func (v *Views) show(f *file, shown region) {
	switch {
	case len(shown.lines) == 0:
	case shown.from == 0:
		f.sieve.splice(f.size(), 0, shown.lines)
		f.regions = append(f.regions, shown)
		v.lines += len(shown.lines)
	default:
		v.lines -= f.displace(shown)
		v.lines += f.lay(shown)
	}
	if len(f.regions) > mostRegions {
		v.thin(f)
	}
}

// lay stores a region whose place is known over the old lines there, and joins it with adjacent regions. It
// returns by how many lines the file grew.
func (f *file) lay(shown region) int {
	more := len(shown.lines) - f.loose(shown.lines)
	f.regions = slices.DeleteFunc(f.regions, func(r region) bool { return len(r.lines) == 0 })
	placed := f.placed()
	first := sort.Search(placed, func(i int) bool { return f.regions[i].end() >= shown.from })
	last := first // the first region after shown that neither overlaps nor adjoins it
	base := f.linesBefore(first)
	over, begins := 0, base
	for ; last < placed && f.regions[last].from <= shown.end(); last++ {
		old := &f.regions[last]
		from, to := max(old.from, shown.from), min(old.end(), shown.end())
		if last == first {
			begins += from - old.from
		}
		for n := from; n < to; n++ {
			l, at := old.lines[n-old.from], shown.lines[n-shown.from]
			if at.text == l.text {
				at.edited, at.cost, at.again = max(at.edited, l.edited), l.cost, true
			}
		}
		over += to - from
	}
	f.sieve.splice(begins, over, shown.lines)
	if first == last {
		f.regions = slices.Insert(f.regions, first, shown)
		return more
	}
	joined := &f.regions[first]
	if rest := &f.regions[last-1]; last > first+1 {
		shown.lines = append(shown.lines, rest.lines[min(shown.end()-rest.from, len(rest.lines)):]...)
		shown.bytes = bytesOf(shown.lines)
	}
	if joined.from > shown.from {
		to := min(shown.end()-joined.from, len(joined.lines))
		joined.from = shown.from
		joined.replace(0, max(to, 0), shown.lines)
	} else {
		from := shown.from - joined.from
		joined.replace(from, min(from+len(shown.lines), len(joined.lines)), shown.lines)
	}
	f.regions = slices.Delete(f.regions, first+1, last)
	return more - over
}

// loose removes the regions without a place whose lines occur among the given lines. It returns how many
// lines it removed.
func (f *file) loose(lines []*line) int {
	placed, gone := f.placed(), 0
	if placed == len(f.regions) {
		return 0
	}
	at := map[string][]int{} // lines by their texts
	for i := range lines {
		at[lines[i].text] = append(at[lines[i].text], i)
	}
	among := func(part []*line) bool {
		return len(part) == 0 || slices.ContainsFunc(at[part[0].text], func(i int) bool {
			return i+len(part) <= len(lines) && slices.EqualFunc(lines[i:i+len(part)], part, func(a, b *line) bool { return a.text == b.text })
		})
	}
	base := f.linesBefore(placed)
	kept := f.regions[:placed]
	for _, r := range f.regions[placed:] {
		if among(r.lines) {
			f.sieve.splice(base, len(r.lines), nil)
			gone += len(r.lines)
			continue
		}
		base += len(r.lines)
		kept = append(kept, r)
	}
	clear(f.regions[len(kept):])
	f.regions = kept
	return gone
}

// placed is how many regions have a place that is known; these come first.
func (f *file) placed() int {
	return sort.Search(len(f.regions), func(i int) bool { return f.regions[i].from == 0 })
}

// linesBefore is how many lines are in the regions before one.
func (f *file) linesBefore(region int) int {
	n := 0
	for i := range f.regions[:region] {
		n += len(f.regions[i].lines)
	}
	return n
}
