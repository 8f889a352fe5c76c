package fileview

import "slices"

// displace forgets lines around a region that is shown, where it shows that a change which was not followed
// moved them: an old line at its end is not the one that is there now. It returns how many.
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
		head, tail := from, to // what stays is before the one, between, and after the other
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
