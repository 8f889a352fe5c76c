package fileview

import (
	"cmp"
	"maps"
	"slices"
)

const (
	// mostLines bounds the lines kept of all files, and mostNames the names of files. The files touched
	// least recently are evicted first.
	mostLines = 50_000
	mostNames = 1_024
	// mostRegions bounds the regions kept of one file, and the entries of file.missed: each edit searches
	// all regions.
	mostRegions = 2_048
)

// newest returns the files of which lines are known, the one touched last first. Files of which only a search
// found lines come after those: nobody may be working on them.
func (v *Views) newest() []*file {
	var all []*file
	once := map[*file]bool{}
	for _, name := range slices.Sorted(maps.Keys(v.files)) { // several names may lead to one file
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

// forget evicts the files touched least recently while there are too many lines or names, and thins out the
// newest file if that alone has too many lines.
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
	v.keepNames(func(_ string, f *file) bool { return len(f.regions) > 0 || f.touched == v.now() || f.found == v.now() })
	if len(v.files) > mostNames { // few files have many
		v.keepNames(func(name string, f *file) bool { return name == keyOf(f.name) || v.files[keyOf(f.name)] != f })
	}
}

// keepNames keeps only some of the names.
func (v *Views) keepNames(keep func(name string, f *file) bool) {
	kept := maps.Clone(v.files)
	maps.DeleteFunc(kept, func(name string, f *file) bool { return !keep(name, f) })
	v.files, v.ends = map[string]*file{}, map[string]*file{}
	for name, f := range kept {
		v.know(name, f)
	}
}

// thin keeps half of mostLines of a file: its regions touched last, and of the newest region only lines
// near its newest one.
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

// around keeps the given number of lines before the first one that a call showed or wrote, and all after it.
func (r *region) around(call, most int) {
	at := max(0, slices.IndexFunc(r.lines, func(l *line) bool { return l.touched == call }))
	from := max(0, at-most)
	if r.lines = r.lines[from:min(len(r.lines), at+most)]; r.from > 0 {
		r.from += from
	}
	r.bytes = bytesOf(r.lines)
}

// miss records that the newest call changed a file in an unknown way.
func (v *Views) miss(f *file) {
	f.edited, f.whole = v.now(), false
	v.lack(f)
}

// lack records that the known lines of a file may lack the change by the newest call.
func (v *Views) lack(f *file) {
	if n := len(f.missed); n > 0 && f.missed[n-1] == v.now() {
		return
	}
	if f.missed = append(f.missed, v.now()); len(f.missed) > mostRegions {
		f.missed = slices.Clone(f.missed[mostRegions/2:])
	}
}
