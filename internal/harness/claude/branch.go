package claude

import (
	"regexp"
	"slices"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// labelParent is, on a message, the uuid of the record that it follows; empty where it begins
// a chain.
const labelParent = "claude.parent"

// follows reports whether an event says which other it follows, as those do that were read
// from the harness's own files.
func follows(e eventlog.Event) bool {
	_, now := e.Labels[labelParent]
	_, once := e.Labels[transcript.EntryLabel(Name)]
	if now || once {
		return true
	}
	c, ok := e.Body.(*eventlog.Custom)
	return ok && transcript.Own(Name, c)
}

// left are the messages among the events, by id, that the harness does not go on from: those
// that no chain reaches which ends in the newest. Of one reply all lines go on, and the
// results of all its calls. What does not say what it follows, follows the message before.
// A chain ends in a record without a parent, and in one whose parent is not among the events:
// the harness, too, goes on from there alone. Where it closes a circle, or no message names what
// it follows, nothing is left.
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
	t.beside(on)
	t.operations(on)
	gone := map[string]bool{}
	for i := range events {
		if _, ok := events[i].Body.(*eventlog.Message); ok && !on[events[i].ID] {
			gone[events[i].ID] = true
		}
	}
	return gone
}

// tree holds what follows what.
type tree struct {
	all     []eventlog.Event
	parents map[string]string // uuids by uuid
	event   map[string]string // the newest event of a uuid
	newest  string            // the uuid of the newest message
	// named is set once a message names what it follows. Those of subagents that came in
	// progress records never do.
	named bool
}

// repeated is what distinguishes events whose records had one uuid.
var repeated = regexp.MustCompile(`#\d+$`)

func (t *tree) read(around transcript.Envelopes) {
	for i := range t.all {
		e := &t.all[i]
		switch b := e.Body.(type) {
		case *eventlog.Message:
			if e.Labels[labelQueued] == queuedRemoval {
				continue // no record follows it
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

// record takes in a record that is no message.
func (t *tree) record(raw string) {
	var rec record
	if transcript.Decode([]byte(raw), &rec) == nil && rec.UUID != "" {
		t.parents[rec.UUID] = rec.ParentUUID
	}
}

// parentIn is the parent that the difference names which builds before there was labelParent
// kept, or the message before where the record had
// no member for one; a record whose parent is null begins a chain.
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

// chain are the events on the way back from the newest; it holds if there is one that ends.
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
			return nil, false // a circle
		}
		if id := t.event[at]; id != "" {
			on[id] = true
		}
		at = parent
	}
	return on, len(on) > 0
}

// operations adds the prompts that came from the queue without a record of the tree: they go
// the way of the message before.
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

// beside adds what is next to the chain and belongs to it.
func (t *tree) beside(on map[string]bool) {
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
