package claude

import (
	"regexp"
	"slices"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// parents has the parent of each record. It finds kept ancestors, and reports broken chains.
type parents struct {
	of   map[string]string // parent by uuid; "" for the first record of a chain
	line map[string]int    // of the file, by uuid
	gone map[string]bool   // uuids of records that are not kept
	// up leads from records that are not kept towards their nearest kept ancestors, without circles.
	up map[string]string
	// within is the parent by uuid for each session separately: the order of records across sessions is not
	// kept.
	within map[string]map[string]string
	// passing are the records that are not kept, by session and uuid.
	passing map[[2]string]bool
	// preserved has, by uuid, each record that a boundary kept, with the boundary's line.
	preserved map[string]int
	// walked is how many records chain has followed.
	walked int
}

func (p *parents) init() {
	*p = parents{of: map[string]string{}, line: map[string]int{}, gone: map[string]bool{}, up: map[string]string{}, passing: map[[2]string]bool{}, within: map[string]map[string]string{}, preserved: map[string]int{}}
}

// add adds a record of the session with the key. Of records with the same uuid the first counts.
func (p *parents) add(session string, rec *record, line int) {
	if rec.UUID == "" {
		return
	}
	within := p.within[session]
	if within == nil {
		within = map[string]string{}
		p.within[session] = within
	}
	_, had := within[rec.UUID]
	if !had {
		within[rec.UUID] = rec.ParentUUID
	}
	drops := transcript.Drops(notKept, rec.Type)
	if at := [2]string{session, rec.UUID}; !drops {
		delete(p.passing, at)
	} else if !had {
		p.passing[at] = true
	}
	if _, seen := p.of[rec.UUID]; seen {
		return
	}
	p.of[rec.UUID], p.line[rec.UUID] = rec.ParentUUID, line
	if drops {
		p.gone[rec.UUID] = true
		if p.kept(rec.ParentUUID) != rec.UUID {
			p.up[rec.UUID] = rec.ParentUUID
		}
	}
}

// holds reports whether the session already has this record, as one that is kept.
func (p *parents) holds(session, uuid string) bool {
	_, came := p.within[session][uuid]
	return came && !p.passing[[2]string{session, uuid}]
}

// preserve records that the boundary in a line kept a record.
func (p *parents) preserve(uuid string, line int) {
	if _, seen := p.preserved[uuid]; !seen && uuid != "" {
		p.preserved[uuid] = line
	}
}

// kept returns the record itself if it is kept, otherwise its nearest kept ancestor. It shortens the way there, because
// very many records may ask for the same.
func (p *parents) kept(parent string) string {
	at := parent
	for next, ok := p.up[at]; ok; next, ok = p.up[at] {
		at = next
	}
	for parent != at {
		p.up[parent], parent = at, p.up[parent]
	}
	return at
}

// mostWalked bounds the records that all calls of chain follow: a file may have very many compactions that name a long
// chain, or one that does not exist.
const mostWalked = 1 << 22

// chain returns the uuids from head to tail, or nil if tail does not descend from
// head within the session.
func (p *parents) chain(session, head, tail string) []string {
	var back []string
	within := p.within[session]
	for at := tail; at != "" && len(back) <= len(within) && p.walked < mostWalked; at = within[at] {
		p.walked++
		back = append(back, at)
		if at == head {
			return back
		}
	}
	return nil
}

// report adds warnings about parents and kept records that are not in the file, and about cycles.
func (p *parents) report(warn transcript.Warn) {
	var dangling, cyclic tally
	// settled are the records whose chain was followed to its end or to a cycle.
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

// labelParent, on a message, is the uuid of the record that it follows; empty if it begins a chain.
const labelParent = "claude.parent"

// follows reports whether an event comes from one of the harness's own files, where records name their
// parents.
func follows(e eventlog.Event) bool {
	_, now := e.Labels[labelParent]
	_, once := e.Labels[transcript.EntryLabel(Name)]
	if now || once {
		return true
	}
	c, ok := e.Body.(*eventlog.Custom)
	return ok && transcript.Own(Name, c)
}

// left returns the messages, by id, of abandoned branches: those that are not on the chain of parents from
// the newest message. All lines of a reply on the chain, and all results of its calls, belong to the chain.
// An event that names no parent follows the message before it. The chain ends at a record without a parent,
// or with a parent that is not among the events, as for the harness itself. Where the chain is a cycle, or no
// message names its parent, no message counts as abandoned.
func left(events []eventlog.Event) map[string]bool {
	if !slices.ContainsFunc(events, follows) {
		return nil
	}
	t := tree{parents: map[string]string{}, event: map[string]string{}, all: events}
	t.read(transcript.EnvelopesOf(Name, transcript.Session{Events: events}))
	on, held := t.chain()
	if !held {
		return nil
	}
	t.addRelated(on)
	t.operations(on)
	gone := map[string]bool{}
	for i := range events {
		if _, ok := events[i].Body.(*eventlog.Message); ok && !on[events[i].ID] {
			gone[events[i].ID] = true
		}
	}
	return gone
}

// tree has the parents of records.
type tree struct {
	all     []eventlog.Event
	parents map[string]string // uuids by uuid
	event   map[string]string // the newest event by uuid
	newest  string            // the uuid of the newest message
	// named is set when a message names its parent. Subagents' messages in progress records never do.
	named bool
}

// repeated matches the suffix that distinguishes events whose records have the same uuid.
var repeated = regexp.MustCompile(`#\d+$`)

func (t *tree) read(around transcript.Envelopes) {
	for i := range t.all {
		e := &t.all[i]
		switch b := e.Body.(type) {
		case *eventlog.Message:
			if e.Labels[labelQueued] == queuedRemoval {
				continue // it has no uuid, so that no record names it as its parent
			}
			uuid := repeated.ReplaceAllString(e.ID, "")
			parent := t.newest
			if label, ok := e.Labels[labelParent]; ok {
				parent, t.named = label, t.named || label != ""
			} else if d, ok := around.Entries[e.ID]; ok {
				parent = t.parentIn(d)
			}
			t.parents[uuid], t.event[uuid], t.newest = parent, e.ID, uuid
		case *eventlog.Custom:
			if around.Holds(b) {
				continue
			}
			if transcript.Own(Name, b) {
				t.record(b.JSON)
			}
		case *eventlog.Compaction:
			t.record(b.NativeJSON)
		}
	}
}

// record adds the parent of a record that is no message.
func (t *tree) record(raw string) {
	var rec record
	if transcript.Decode([]byte(raw), &rec) == nil && rec.UUID != "" {
		t.parents[rec.UUID] = rec.ParentUUID
	}
}

// parentIn returns the parent for events of builds that had no labelParent: the one in the stored difference, or the
// message before it if the record had no parentUuid. A record whose parent is null begins a chain.
func (t *tree) parentIn(difference string) string {
	var d struct {
		Set struct {
			Parent string `json:"parentUuid"`
		} `json:"set"`
		Del []string `json:"del"`
	}
	if transcript.Decode([]byte(difference), &d) != nil {
		return ""
	}
	if slices.Contains(d.Del, "parentUuid") {
		return t.newest
	}
	t.named = t.named || d.Set.Parent != ""
	return d.Set.Parent
}

// chain returns the events from the newest back to the first of its chain; held is false for a cycle, or if
// no message names its parent.
func (t *tree) chain() (on map[string]bool, held bool) {
	if !t.named {
		return nil, false
	}
	on = map[string]bool{}
	at := t.newest
	for n := 0; at != ""; n++ {
		parent, ok := t.parents[at]
		if !ok {
			break
		}
		if n > len(t.parents) {
			return nil, false // a cycle
		}
		if id := t.event[at]; id != "" {
			on[id] = true
		}
		at = parent
	}
	return on, len(on) > 0
}

// operations adds the prompts that came in records of the queue, which have no parent: each is on the chain
// if the message before it is.
func (t *tree) operations(on map[string]bool) {
	before := true
	for i := range t.all {
		e := &t.all[i]
		if _, ok := e.Body.(*eventlog.Message); !ok {
			continue
		}
		if e.Labels[labelQueued] == queuedRemoval {
			on[e.ID] = before
		}
		before = on[e.ID]
	}
}

// addRelated adds what belongs to the chain but is not on it: the other lines of its replies, and the results
// of its calls.
func (t *tree) addRelated(on map[string]bool) {
	replies, calls := map[string]bool{}, map[string]bool{}
	for i := range t.all {
		if m, ok := t.all[i].Body.(*eventlog.Message); ok && on[t.all[i].ID] && m.GroupID != "" {
			replies[m.GroupID] = true
		}
	}
	for i := range t.all {
		e := &t.all[i]
		m, ok := e.Body.(*eventlog.Message)
		if !ok {
			continue
		}
		replaced := t.event[repeated.ReplaceAllString(e.ID, "")] != e.ID
		if m.Role == eventlog.RoleAssistant && replies[m.GroupID] && !replaced {
			on[e.ID] = true
		}
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case eventlog.ToolCall:
				calls[b.CallID] = calls[b.CallID] || on[e.ID]
			case eventlog.ToolResult:
				on[e.ID] = on[e.ID] || calls[b.CallID]
			}
		}
	}
}
