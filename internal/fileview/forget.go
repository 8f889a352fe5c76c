package fileview

import (
	"cmp"
	"maps"
	"slices"
)

const (
	// mostLines are kept of all files, and mostNames of them are known by name; those touched
	// longest ago are forgotten first.
	mostLines = 50_000
	mostNames = 1_024
	// mostRegions are kept of one file, and as many calls that changed it in ways that are not known: each
	// edit looks through all regions.
	mostRegions = 2_048
)

// newest are the files of which lines are known, that which was touched last first, then
// those of which lines were found: a search finds lines of many files that nobody works on.
func (v *Views) newest() []*file {
	var all []*file
	once := map[*file]bool{}
	for _, name := range slices.Sorted(maps.Keys(v.files)) { // two of them may have one name of their own
		if f := v.files[name]; !once[f] && len(f.regions) > 0 {
			once[f] = true
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b *file) int {
		return cmp.Or(cmp.Compare(b.touched, a.touched), cmp.Compare(b.found, a.found), cmp.Compare(a.name, b.name))
	})
	return all
}

// forget drops the files that were touched longest ago while there is too much, and of the last one that
// is there the lines.
func (v *Views) forget() {
	if v.lines <= mostLines && len(v.files) <= mostNames {
		return
	}
	all := v.newest()
	for i := len(all) - 1; i > 0 && (v.lines > mostLines/2 || i >= mostNames/2); i-- {
		v.lines -= all[i].size()
		all[i].regions, all[i].sieve, all[i].whole = nil, nil, false
	}
	if len(all) > 0 && v.lines > mostLines {
		v.thin(all[0])
	}
	v.rename(func(_ string, f *file) bool { return len(f.regions) > 0 || f.touched == v.now() || f.found == v.now() })
	if len(v.files) > mostNames { // few files have many
		v.rename(func(name string, f *file) bool { return name == keyOf(f.name) || v.files[keyOf(f.name)] != f })
	}
}

// rename keeps some of the names.
func (v *Views) rename(keep func(name string, f *file) bool) {
	kept := maps.Clone(v.files)
	maps.DeleteFunc(kept, func(name string, f *file) bool { return !keep(name, f) })
	v.files, v.ends = map[string]*file{}, map[string]*file{}
	for name, f := range kept {
		v.know(name, f)
	}
}

// thin drops the regions of a file that were touched longest ago, until half of what may be kept is left,
// and of the newest one what is far from its newest line.
func (v *Views) thin(f *file) {
	v.lines -= f.size()
	order, newest := make([]int, len(f.regions)), make([]int, len(f.regions))
	for i := range f.regions {
		order[i], newest[i] = i, f.regions[i].newest()
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(newest[b], newest[a]), cmp.Compare(b, a)) })
	kept, lines := map[int]bool{}, 0
	for n, i := range order[:min(len(order), mostRegions/2)] {
		if n == 0 {
			f.regions[i].around(newest[i], mostLines/4)
		}
		if lines += len(f.regions[i].lines); lines > mostLines/2 {
			break
		}
		kept[i] = true
	}
	i := -1
	f.regions = slices.DeleteFunc(f.regions, func(region) bool { i++; return !kept[i] })
	f.sieve, f.whole = nil, false
	v.lines += f.size()
}

// newest is the newest call that showed or wrote a line of the region; 0 where it has none.
func (r *region) newest() int {
	call := 0
	for _, l := range r.lines {
		call = max(call, l.touched)
	}
	return call
}

// around keeps so many lines before the first that a call showed or wrote, and from it on.
func (r *region) around(call, most int) {
	at := max(0, slices.IndexFunc(r.lines, func(l *line) bool { return l.touched == call }))
	from := max(0, at-most)
	if r.lines = r.lines[from:min(len(r.lines), at+most)]; r.from > 0 {
		r.from += from
	}
	r.bytes = bytesOf(r.lines)
}

// miss takes note that a file was changed in a way that is not known.
func (v *Views) miss(f *file) {
	f.edited, f.whole = v.now(), false
	v.lack(f)
}

// lack takes note that what is known of a file may lack what the newest call changed.
func (v *Views) lack(f *file) {
	if n := len(f.missed); n > 0 && f.missed[n-1] == v.now() {
		return
	}
	if f.missed = append(f.missed, v.now()); len(f.missed) > mostRegions {
		f.missed = slices.Clone(f.missed[mostRegions/2:])
	}
}
