package claude

import (
	"github.com/contextd/contextd/internal/harness/transcript"
)

// parents knows what each record follows, to find what the records that are not
// kept came after, and chains that do not hold.
type parents struct {
	of   map[string]string // parent by uuid; "" begins a chain
	line map[string]int
	gone map[string]bool // uuids of records that are not kept
	// within is `of` for each session: where the records of one are among those of another is
	// not kept.
	within map[string]map[string]string
	// preserved are the lines of the boundaries that kept records, by the uuids of these.
	preserved map[string]int
}

func (p *parents) init() {
	*p = parents{of: map[string]string{}, line: map[string]int{}, gone: map[string]bool{}, within: map[string]map[string]string{}, preserved: map[string]int{}}
}

// note remembers a record of the session with the key. Of records with the same uuid
// the first counts.
func (p *parents) note(session string, rec *record, line int) {
	if rec.UUID == "" {
		return
	}
	within := p.within[session]
	if within == nil {
		within = map[string]string{}
		p.within[session] = within
	}
	if _, seen := within[rec.UUID]; !seen {
		within[rec.UUID] = rec.ParentUUID
	}
	if _, seen := p.of[rec.UUID]; seen {
		return
	}
	p.of[rec.UUID], p.line[rec.UUID] = rec.ParentUUID, line
	if transcript.Drops(notKept, rec.Type) {
		p.gone[rec.UUID] = true
	}
}

// preserve notes that a boundary kept a record.
func (p *parents) preserve(uuid string, line int) {
	if _, seen := p.preserved[uuid]; !seen && uuid != "" {
		p.preserved[uuid] = line
	}
}

// kept returns the parent, or its nearest ancestor that is kept if it is not.
func (p *parents) kept(parent string) string {
	at := parent
	for n := 0; p.gone[at] && n <= len(p.gone); n++ {
		at = p.of[at]
	}
	return at
}

// chain returns the uuids from head to tail, or nil if tail does not descend from
// head within the session.
func (p *parents) chain(session, head, tail string) []string {
	var back []string
	within := p.within[session]
	for at := tail; at != "" && len(back) <= len(within); at = within[at] {
		back = append(back, at)
		if at == head {
			return back
		}
	}
	return nil
}

// report warns of parents and of kept records that are not in the file, and of chains that close.
func (p *parents) report(warn transcript.Warn) {
	var dangling, cyclic tally
	// settled are the records whose chain ends, or was reported.
	settled := map[string]bool{}
	for uuid, parent := range p.of {
		if _, known := p.of[parent]; parent != "" && !known {
			dangling.add(p.line[uuid])
		}
		path := map[string]bool{}
		at := uuid
		for at != "" && !settled[at] && !path[at] {
			path[at] = true
			at = p.of[at]
		}
		if path[at] { // a cycle that was not seen before
			for next := at; ; {
				cyclic.add(p.line[next])
				if next = p.of[next]; next == at {
					break
				}
			}
		}
		for u := range path {
			settled[u] = true
		}
	}
	var lost tally
	for uuid, line := range p.preserved {
		if _, known := p.of[uuid]; !known {
			lost.add(line)
		}
	}
	if lost.count > 0 {
		warn(lost.first, "%d records that a compaction kept are not in the file", lost.count)
	}
	if dangling.count > 0 {
		warn(dangling.first, "%d records follow a record that is not in the file; they stay in place", dangling.count)
	}
	if cyclic.count > 0 {
		warn(cyclic.first, "%d records follow each other in a circle; they stay in place", cyclic.count)
	}
}

type tally struct{ count, first int }

func (t *tally) add(line int) {
	if t.count == 0 || line < t.first {
		t.first = line
	}
	t.count++
}
