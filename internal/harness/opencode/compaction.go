package opencode

import (
	"encoding/json"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// pending is a compaction on its way: the request for it is a message of the user's
// and its summary the next reply.
type pending struct {
	entry   transcript.Entry
	body    *eventlog.Compaction
	request json.RawMessage // nil if it says something else too
	reply   json.RawMessage // nil if there is none
}

// summaryPart is the reply in a compaction's envelopes.
const summaryPart = "summary"

func summaryID(event string) string { return event + "/" + summaryPart }

func (r *reader) compaction(entry transcript.Entry, p *part) {
	r.flush()
	body := &eventlog.Compaction{NativeJSON: transcript.Compact(entry.Native)}
	if p.Auto != nil {
		body.Trigger, body.Mode = eventlog.TriggerManual, "manual"
		if *p.Auto {
			body.Trigger, body.Mode = eventlog.TriggerThreshold, "auto"
		}
	}
	tail := max(p.TailStart, p.TailOld)
	if body.KeptEventIDs = r.since(tail); tail != "" && tail != redacted && body.KeptEventIDs == nil {
		r.out.Warn(entry.Line, "what the compaction kept is not in the file: it begins with the message %.100q", tail)
	}
	entry.Body, entry.Native = body, nil
	r.pending = &pending{entry: entry, body: body}
}

// unread is a compaction whose summary cannot be read, which the writer keeps where no
// model sees it.
func (r *reader) unread(entry transcript.Entry, m *compactionMetadata) {
	body := &eventlog.Compaction{}
	r.told(body, m)
	entry.Body, entry.Native = body, nil
	r.session.Append(entry)
}

// since returns the ids of the events from a message on.
func (r *reader) since(message string) []string {
	if message == "" {
		return nil
	}
	for i, id := range r.sent {
		if messageID(id) == message {
			return append([]string(nil), r.sent[i:]...)
		}
	}
	return nil
}

// summary is the reply in which the model sums up; with the request for it, it is
// the compaction. A reply without a request is one by itself.
func (r *reader) summary(entry transcript.Entry, parts []part) {
	if r.pending == nil {
		body := &eventlog.Compaction{NativeJSON: transcript.Compact(entry.Native)}
		lone := entry
		lone.Body, lone.Native = body, nil
		r.pending = &pending{entry: lone, body: body}
	} else {
		r.pending.reply = entry.Native
	}
	for i := range parts {
		switch parts[i].Type {
		case "text":
			if r.pending.body.Summary != "" {
				r.pending.body.Summary += "\n"
			}
			r.pending.body.Summary += parts[i].Text
			r.told(r.pending.body, parts[i].Metadata[systemMark].Compaction)
		case "step-finish":
			for k, v := range parts[i].Tokens.labels() {
				if r.pending.entry.Labels == nil {
					r.pending.entry.Labels = map[string]string{}
				}
				r.pending.entry.Labels[k] = v
			}
		}
	}
	r.flush()
}

var triggers = map[eventlog.CompactionTrigger]string{
	eventlog.TriggerUnspecified: "unspecified", eventlog.TriggerManual: "manual",
	eventlog.TriggerThreshold: "threshold", eventlog.TriggerBudgetPressure: "budget_pressure",
}

// ours takes what contextd wrote of a compaction.
func (r *reader) told(c *eventlog.Compaction, m *compactionMetadata) {
	if m == nil {
		return
	}
	for trigger, name := range triggers {
		if name == m.Trigger {
			c.Trigger = trigger
		}
	}
	c.Mode, c.Strategy = transcript.Clean(m.Mode), transcript.Clean(m.Strategy)
	c.PreTokens, c.PostTokens = m.PreTokens, m.PostTokens
	if len(m.Kept) == 0 {
		return
	}
	for _, id := range m.Again {
		r.again[id] = true
	}
	kept := map[string]bool{}
	for _, id := range m.Kept {
		kept[id] = true
	}
	c.KeptEventIDs = nil
	for _, id := range r.sent {
		if kept[messageID(id)] {
			c.KeptEventIDs = append(c.KeptEventIDs, id)
		}
	}
}

// flush appends a compaction that waits for its summary, and what is kept of its
// two messages.
func (r *reader) flush() {
	p := r.pending
	if p == nil {
		return
	}
	r.pending = nil
	n := r.session.Len()
	if r.session.Append(p.entry) == "" {
		return
	}
	event := r.session.Since(n)[0]
	if p.request != nil {
		base := r.render.request(&event, p.body)
		r.session.Envelope(n, transcript.Difference(base, p.request, notKeptOfUser...))
	}
	if p.reply != nil {
		base := r.render.reply(&event, p.body)
		r.session.EnvelopeOf(n, summaryPart, transcript.Difference(base, p.reply, notKeptOfModel...))
	}
}
