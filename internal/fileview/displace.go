package fileview

import "slices"

// displace forgets known lines around a shown region that a change moved which was not followed. A sign of
// that is a line at either end of the region that reads differently now. It returns how many lines it
// forgot.
func (f *file) displace(shown region) int {
	if len(f.missed) == 0 {
		return 0
	}
	before, missed := f.size(), f.missed[len(f.missed)-1]
	for i := 0; i < f.placed(); i++ {
		old := f.regions[i]
		from, to := max(old.from, shown.from)-old.from, min(old.end(), shown.end())-old.from
		if from >= to {
			continue
		}
		moved := func(at int) bool {
			return old.lines[at].touched < missed && old.lines[at].text != shown.lines[old.from+at-shown.from].text
		}
		head, tail := from, to // old.lines[:head], [from:to] and [tail:] are kept
		for moved(from) && head > 0 && old.lines[head-1].touched < missed {
			head--
		}
		for moved(to-1) && tail < len(old.lines) && old.lines[tail].touched < missed {
			tail++
		}
		if head == from && tail == to {
			continue
		}
		var kept []region
		for _, part := range []region{
			{from: old.from, lines: old.lines[:head]}, {from: old.from + from, lines: old.lines[from:to]}, {from: old.from + tail, lines: old.lines[tail:]},
		} {
			if len(part.lines) > 0 {
				kept = append(kept, regionOf(part.from, slices.Clone(part.lines)))
			}
		}
		f.regions, f.sieve = slices.Replace(f.regions, i, i+1, kept...), nil
		i += len(kept) - 1
	}
	return before - f.size()
}
