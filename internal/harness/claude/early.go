package claude

import (
	"bytes"
	"slices"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// early are a session's results whose calls have not come. Claude Code may write a result
// before the record that it follows, which has the call.
//
// What ends the wait is in the records that come and never in how many: a file that is
// written from the events, in which the result has its place after the call, must be read
// as the one that they came from. For the same reason a record counts only where it makes
// an event, and nothing ends at the end of the file: there may be more of it later.
type early struct {
	all     []*earlyResult
	waiting int // how many of them wait still
	// by are those that a call or a record ends the wait of.
	by map[arrival][]*earlyResult
}

// arrival is what a result waits for.
type arrival struct {
	kind arrivalKind
	id   string
}

type arrivalKind uint8

const (
	arrivedCall   arrivalKind = iota // the call with the id
	arrivedParent                    // the record that the result follows
	arrivedChild                     // a message that follows the result
	arrivedSelf                      // a message whose record has the uuid of the result's
)

type earlyResult struct {
	rec   record
	entry transcript.Entry
	key   string // of its session
	// parent is the record that it waits for, which the one that it follows may lead to.
	parent string
	in     *early
	done   bool
}

// existing is the session of a record, if it has begun and the record itself says which it is.
func (r *reader) existing(rec *record) *transcript.SessionBuilder {
	switch {
	case !rec.IsSidechain:
		return r.main
	case rec.AgentID != "":
		return r.chains.byKey[rec.AgentID]
	}
	return nil
}

// tooEarly holds a record back if it is of results alone, none of whose calls has come, and
// follows a record that has not come either. It reports whether it did.
func (r *reader) tooEarly(rec *record, entry transcript.Entry) bool {
	session := r.existing(rec)
	if session == nil || !rec.speaks() || rec.Type != "user" || rec.UUID == "" {
		return false
	}
	key := r.chains.key(rec)
	parent := r.parents.kept(rec.ParentUUID)
	if parent == "" || parent == rec.UUID || r.parents.holds(key, parent) {
		return false
	}
	at := r.of(session)
	if _, again := at.events[rec.UUID]; again {
		return false
	}
	blocks, err := content.AnthropicBlocks(rec.Message.Content)
	if err != nil || role(rec.Type, blocks) != eventlog.RoleTool {
		return false
	}
	for _, b := range blocks {
		if id := b.(eventlog.ToolResult).CallID; id == "" || r.notes.own(id) != id || session.Called(id) {
			return false
		}
	}
	held := &earlyResult{rec: rec.lasting(), entry: entry, key: key, in: &at.early}
	held.entry.Native = bytes.Clone(entry.Native)
	at.early.all = append(at.early.all, held)
	at.early.waiting++
	if at.early.by == nil {
		at.early.by = map[arrival][]*earlyResult{}
	}
	for _, b := range blocks {
		at.early.wait(held, arrivedCall, b.(eventlog.ToolResult).CallID)
	}
	r.waitFor(held, parent)
	at.early.wait(held, arrivedChild, rec.UUID)
	at.early.wait(held, arrivedSelf, rec.UUID)
	return true
}

// waitFor has a result wait for the record that it follows.
func (r *reader) waitFor(held *earlyResult, parent string) {
	held.parent = parent
	held.in.wait(held, arrivedParent, parent)
	if r.lost == nil {
		r.lost = map[string][]*earlyResult{}
	}
	r.lost[parent] = append(r.lost[parent], held)
}

// passedOver has the results that wait for a record which is not kept wait for the one that
// this follows.
func (r *reader) passedOver(uuid string) {
	all := r.lost[uuid]
	if len(all) == 0 || !r.parents.gone[uuid] {
		return
	}
	delete(r.lost, uuid)
	for i, held := range all {
		parent := r.parents.kept(uuid)
		switch {
		case held.done:
		case parent == "" || parent == held.rec.UUID || r.parents.holds(held.key, parent):
			r.release(all[i : i+1])
		default:
			r.waitFor(held, parent)
		}
	}
}

// lasting is a record of a message that none of the file's bytes, which are used again, are
// in.
func (rec *record) lasting() record {
	out, message := *rec, *rec.Message
	message.Content = bytes.Clone(message.Content)
	out.Message, out.ToolUseResult = &message, bytes.Clone(rec.ToolUseResult)
	out.Data, out.Attachment, out.Content = nil, nil, nil
	return out
}

func (e *early) wait(held *earlyResult, kind arrivalKind, id string) {
	e.by[arrival{kind, id}] = append(e.by[arrival{kind, id}], held)
}

// take removes the results that wait for something.
func (e *early) take(kind arrivalKind, id string) []*earlyResult {
	held := e.by[arrival{kind, id}]
	delete(e.by, arrival{kind, id})
	return held
}

// speaks reports whether a record holds a message.
func (rec *record) speaks() bool {
	return (rec.Type == "user" || rec.Type == "assistant") && rec.Message != nil && rec.Notes == nil &&
		!rec.IsCompactSummary && !rec.IsAPIErrorMessage
}

// before ends the wait of results whose calls cannot come after a record: Claude Code takes a
// human's next prompt, and has the model go on from a result, only once all that led there was
// written. A compaction ends nothing: what comes after its record may be before it in the session.
func (r *reader) before(rec *record) {
	session := r.existing(rec)
	if session == nil || rec.UUID == "" || r.of(session).early.waiting == 0 || !rec.speaks() {
		return
	}
	at := r.of(session)
	if _, again := at.events[rec.UUID]; again {
		return
	}
	blocks, err := content.AnthropicBlocks(rec.Message.Content)
	switch {
	case err != nil:
	case role(rec.Type, blocks) == eventlog.RoleTool:
	case role(rec.Type, blocks) == eventlog.RoleUser && !rec.injected(blocks, false):
		r.release(at.early.all)
	default:
		r.release(at.early.take(arrivedChild, r.parents.kept(rec.ParentUUID)))
	}
}

// after ends the wait of results that have their calls now, or whose record before them came
// without.
func (r *reader) after(rec *record) {
	r.passedOver(rec.UUID)
	session := r.existing(rec)
	if session == nil || r.of(session).early.waiting == 0 {
		return
	}
	at := r.of(session)
	if rec.Type == "assistant" && rec.Message != nil {
		blocks, err := content.AnthropicBlocks(rec.Message.Content)
		for _, b := range blocks {
			if c, ok := b.(eventlog.ToolCall); ok && err == nil && (session.Called(c.CallID) || session.Called(r.notes.own(c.CallID))) {
				r.release(at.early.take(arrivedCall, c.CallID))
			}
		}
	}
	if _, again := at.events[rec.UUID]; again {
		r.release(at.early.take(arrivedSelf, rec.UUID))
	}
	if rec.UUID != "" && !transcript.Drops(notKept, rec.Type) {
		all := at.early.take(arrivedParent, rec.UUID)
		r.release(slices.DeleteFunc(all, func(held *earlyResult) bool { return held.parent != rec.UUID }))
	}
}

// release reads records that were held back.
func (r *reader) release(all []*earlyResult) {
	for _, held := range all {
		if held.done {
			continue
		}
		held.done = true
		if held.in.waiting--; held.in.waiting == 0 {
			*held.in = early{}
		}
		r.conversation(&held.rec, held.entry)
		r.parents.note(held.key, &held.rec, held.entry.Line)
		r.after(&held.rec)
	}
}

// reportEarly warns of the results that still wait at the end of the file.
func (r *reader) reportEarly(session *transcript.SessionBuilder) {
	var waiting tally
	for _, held := range r.of(session).early.all {
		if !held.done {
			waiting.add(held.entry.Line)
			r.parents.note(held.key, &held.rec, held.entry.Line)
		}
	}
	if waiting.count > 0 {
		r.out.Warn(waiting.first, "%d results wait for their calls, which are not in the file yet, and are left out", waiting.count)
	}
}
