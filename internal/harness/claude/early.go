package claude

import (
	"bytes"
	"slices"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// early has a session's results that come before their calls: Claude Code may write a result before its parent, the
// record with the call. The reader holds such a result back.
//
// Only the content of the records that follow may end the wait, never their number. The reason is that a file written
// from the events, in which the result comes after its call, must be read as the same session. For the same reason a
// record counts only if it makes an event, and the end of the file ends no wait, because the file may grow.
type early struct {
	all     []*earlyResult
	waiting int // how many were not released yet
	// by has the results by each arrival that ends their wait.
	by map[arrival][]*earlyResult
}

// arrival is something that a result waits for.
type arrival struct {
	kind arrivalKind
	id   string
}

type arrivalKind uint8

const (
	arrivedCall   arrivalKind = iota // the call with the id
	arrivedParent                    // the result's parent
	arrivedChild                     // a message whose parent is the result
	arrivedSelf                      // a message with the uuid of the result's record
)

type earlyResult struct {
	rec   record
	entry transcript.Entry
	key   string // that sidechains.key gives for its session
	// parent is the record that it waits for: its parent, or an ancestor if the parent is not kept. moved is how often
	// that changed.
	parent string
	moved  int
	in     *early
	done   bool
}

// existing returns the session of a record, if it has begun and if the record itself identifies it; otherwise nil.
func (r *reader) existing(rec *record) *transcript.SessionBuilder {
	switch {
	case !rec.IsSidechain:
		return r.main
	case rec.AgentID != "":
		return r.chains.byKey[rec.AgentID]
	}
	return nil
}

// tooEarly holds a record back, and reports true, if it has only results, no call of theirs was read, and its
// parent was not read either.
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

// waitFor makes a result wait for the record with the uuid parent.
func (r *reader) waitFor(held *earlyResult, parent string) {
	held.parent = parent
	held.in.wait(held, arrivedParent, parent)
	if r.lost == nil {
		r.lost = map[string][]*earlyResult{}
	}
	r.lost[parent] = append(r.lost[parent], held)
}

// passedOver handles the arrival of a record that is not kept: results that waited for it now wait for its parent.
func (r *reader) passedOver(uuid string) {
	all := r.lost[uuid]
	if len(all) == 0 || !r.parents.gone[uuid] {
		return
	}
	delete(r.lost, uuid)
	for i, held := range all {
		parent := r.parents.kept(uuid)
		switch held.moved++; {
		case held.done:
		case parent == "" || parent == held.rec.UUID || r.parents.holds(held.key, parent):
			r.release(all[i : i+1])
		case held.moved > mostMoved: // its call still ends the wait
		default:
			r.waitFor(held, parent)
		}
	}
}

// mostMoved is how many ancestors a result waits for, one after the other. A file may have a long chain of records that
// are not kept, in any order, and very many results at its end.
const mostMoved = 64

// lasting returns a copy of a message's record that does not refer to the line's bytes, which the reader reuses.
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

// remove removes and returns the results that wait for an arrival.
func (e *early) remove(kind arrivalKind, id string) []*earlyResult {
	held := e.by[arrival{kind, id}]
	delete(e.by, arrival{kind, id})
	return held
}

// speaks reports whether a record is a message of the conversation.
func (rec *record) speaks() bool {
	return (rec.Type == "user" || rec.Type == "assistant") && rec.Message != nil && rec.Notes == nil &&
		!rec.IsCompactSummary && !rec.IsAPIErrorMessage
}

// releaseBefore releases, before a record is read, the results whose calls cannot follow any more: Claude
// Code writes a human's next prompt, and a record that follows a result, only after all records that led
// there. A compaction releases nothing, because records after it may come before it in the session.
func (r *reader) releaseBefore(rec *record) {
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
		r.release(at.early.remove(arrivedChild, r.parents.kept(rec.ParentUUID)))
	}
}

// releaseAfter releases, after a record was read, the results whose call is now in the session, or whose
// parent came without it.
func (r *reader) releaseAfter(rec *record) {
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
				r.release(at.early.remove(arrivedCall, c.CallID))
			}
		}
	}
	if _, again := at.events[rec.UUID]; again {
		r.release(at.early.remove(arrivedSelf, rec.UUID))
	}
	if rec.UUID != "" && !transcript.Drops(notKept, rec.Type) {
		all := at.early.remove(arrivedParent, rec.UUID)
		r.release(slices.DeleteFunc(all, func(held *earlyResult) bool { return held.parent != rec.UUID }))
	}
}

// release reads the records of results that were held back.
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
		r.parents.add(held.key, &held.rec, held.entry.Line)
		r.releaseAfter(&held.rec)
	}
}

// reportEarly adds warnings about results that are still held back at the end of the file.
func (r *reader) reportEarly(session *transcript.SessionBuilder) {
	var waiting tally
	for _, held := range r.of(session).early.all {
		if !held.done {
			waiting.add(held.entry.Line)
			r.parents.add(held.key, &held.rec, held.entry.Line)
		}
	}
	if waiting.count > 0 {
		r.out.Warn(waiting.first, "%d results wait for their calls, which are not in the file yet, and are left out", waiting.count)
	}
}
