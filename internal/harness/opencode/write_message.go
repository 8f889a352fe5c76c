package opencode

import (
	"strconv"
	"strings"
	"time"

	"github.com/contextd/contextd/internal/harness/transcript"
	"github.com/contextd/contextd/internal/harness/transcript/jsonvalue"
	eventlog "github.com/contextd/contextd/internal/log"
)

// next writes the message that begins with the first event and returns how many
// events it has dealt with.
func (w *writer) next(events []eventlog.Event) int {
	e := &events[0]
	switch b := e.Body.(type) {
	case *eventlog.Compaction:
		w.compaction(e, b)
		return 1
	case *eventlog.Reminder:
		w.warning("reminders, which live for some turns only, are left out")
		return 1
	case *eventlog.Custom:
		if !strings.HasPrefix(b.Type, Name+".") {
			if !w.envelopes.Holds(b) {
				w.warning("events of type %.100s, which opencode has no message for, are left out", b.Type)
			}
			return 1
		}
		if b.Type == prunedType {
			return 1 // the parts of the calls say so
		}
	case *eventlog.Message:
		if b.Role == eventlog.RoleTool {
			return 1 // in the part of its call
		}
	}
	n := span(events, w.envelopes)
	w.message(events[:n])
	return n
}

func (w *writer) message(events []eventlog.Event) {
	if raw := whole(events); raw != "" {
		w.add(jsonvalue.Raw(raw))
		return
	}
	if difference, ok := w.envelopes.Entries[events[0].ID]; ok {
		v := w.amend(w.native.message(events, w.results), difference)
		w.foreign.parent = messageID(events[0].ID)
		w.ids[messageID(events[0].ID)] = w.foreign.parent
		w.add(v)
		w.behind(events)
		return
	}
	for i := range events {
		if m, ok := events[i].Body.(*eventlog.Message); ok && says(m) {
			w.add(w.foreign.message(events, w.results))
			return
		}
	}
	if c, ok := events[0].Body.(*eventlog.Custom); ok {
		w.warning("events of type %.100s are no messages of opencode and are left out", c.Type)
	}
}

// behind has what is not the harness's own stand behind a message that is.
func (w *writer) behind(events []eventlog.Event) {
	for i := range events {
		if at := events[i].Time; !at.IsZero() && !at.Before(w.foreign.last) {
			w.foreign.last = at.Add(time.Millisecond)
		}
	}
}

// says reports whether a message holds something besides results.
func says(m *eventlog.Message) bool {
	for _, b := range m.Blocks {
		if _, ok := b.(eventlog.ToolResult); !ok {
			return true
		}
	}
	return false
}

// own tells a compaction that was read from a file: from a request, or from a lone
// reply.
func own(c *eventlog.Compaction) (request, reply bool) {
	raw := []byte(c.NativeJSON)
	if !transcript.Valid(raw) {
		return false, false
	}
	kind, _ := transcript.MemberOf(raw, "type")
	_, info := transcript.MemberOf(raw, "info")
	_, other := transcript.MemberOf(raw, "timestamp")
	return string(kind) == `"compaction"` && !other, info
}

func (w *writer) compaction(e *eventlog.Event, c *eventlog.Compaction) {
	w.report.Compactions++
	request, lone := own(c)
	if lone {
		w.add(jsonvalue.Raw(c.NativeJSON))
		return
	}
	difference, kept := w.envelopes.Entries[e.ID]
	if request && kept {
		w.add(w.amend(w.native.request(e, c), difference))
	}
	within := e.Labels[labelWithin] == "true"
	if request && (kept || within) {
		id := summaryID(e.ID)
		if difference, ok := w.envelopes.Entries[id]; ok {
			w.add(w.amend(w.native.reply(e, c), difference))
		}
		return
	}
	w.foreignCompaction(e, c)
}

// foreignCompaction writes one that contextd or another harness made. What the
// harness does not say of it is metadata of the summary's text.
func (w *writer) foreignCompaction(e *eventlog.Event, c *eventlog.Compaction) {
	p := parts{session: w.foreign.session, message: w.messageID(e)}
	tail, kept, all := w.kept(c)
	if c.Summary == "" {
		w.warning("a compaction whose summary is not readable stays out of opencode's prompt, which has the whole history")
		part := p.add("text", text("text", ""), member("ignored", jsonvalue.Raw("true")), member("metadata", *metadataOf(c, all)))
		w.add(w.foreign.request(e, &eventlog.Compaction{NativeJSON: string(part.JSON())}))
		return
	}
	auto := "true"
	if c.Trigger == eventlog.TriggerManual || c.Trigger == eventlog.TriggerUnspecified {
		auto = "false"
	}
	part := p.add("compaction", member("auto", jsonvalue.Raw(auto)))
	part.SetString("tail_start_id", tail)
	asked := *c
	asked.NativeJSON = string(part.JSON())
	w.add(w.foreign.request(e, &asked))
	reply := w.foreign.reply(e, c)
	w.add(w.amend(reply, `{"in":{"parts":{"at":{"1":{"set":{"metadata":`+string(metadataOf(c, kept).JSON())+`}}}}}}`))
}

// kept finds the first message of the tail that was kept. If more was kept, which
// the harness has no place for, all of it is named.
func (w *writer) kept(c *eventlog.Compaction) (tail string, named, all []jsonvalue.Value) {
	kept := map[string]bool{}
	for _, id := range c.KeptEventIDs {
		if message, ok := w.owner[id]; ok {
			kept[message] = true
		}
	}
	first := len(w.sent)
	for first > 0 && kept[w.sent[first-1]] {
		first--
		tail = w.sent[first]
	}
	more := false
	for i, message := range w.sent {
		if kept[message] {
			all = append(all, jsonvalue.String(message))
			more = more || i < first
		}
	}
	if !more {
		return tail, nil, all
	}
	if c.Summary != "" {
		w.warning("a compaction that kept more than a tail keeps in opencode the tail alone")
	}
	return tail, all, all
}

func metadataOf(c *eventlog.Compaction, kept []jsonvalue.Value) *jsonvalue.Value {
	v := jsonvalue.Object(text("trigger", triggers[c.Trigger]))
	v.SetString("mode", c.Mode)
	v.SetString("strategy", c.Strategy)
	if c.PreTokens != nil {
		v.Set("preTokens", jsonvalue.Raw(strconv.FormatUint(*c.PreTokens, 10)))
	}
	if c.PostTokens != nil {
		v.Set("postTokens", jsonvalue.Raw(strconv.FormatUint(*c.PostTokens, 10)))
	}
	if kept != nil {
		v.Set("kept", jsonvalue.List(kept...))
	}
	metadata := jsonvalue.Object(member(systemMark, jsonvalue.Object(member("compaction", v))))
	return &metadata
}
