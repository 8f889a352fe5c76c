package opencode

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// pending is a compaction that is being read: its request is a user message, and its summary the next reply.
type pending struct {
	entry   transcript.Entry
	body    *eventlog.Compaction
	request jsontext.Value // nil if the message has other content too
	reply   jsontext.Value // nil if there is none
}

// summaryPart is the part of the envelope for the reply; the request is the first part.
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

// unread reads a compaction without a summary, which contextd wrote into a part that no model sees.
func (r *reader) unread(entry transcript.Entry, m *compactionMetadata) {
	body := &eventlog.Compaction{}
	r.noted(body, m)
	r.session.Boundary(entry, body)
}

// since returns the ids of the events from a message on; nil if that is not in the file.
func (r *reader) since(message string) []string {
	if at := r.places[message]; message != "" && len(at) > 0 {
		return slices.Clone(r.sent[at[0]:])
	}
	return nil
}

// summary reads the reply with the summary, which makes a compaction together with the request. A reply
// without a request is a compaction by itself.
func (r *reader) summary(entry transcript.Entry, parts []part) {
	if r.pending == nil {
		body := &eventlog.Compaction{NativeJSON: transcript.Compact(entry.Native)}
		lone := entry
		lone.Body, lone.Native = body, nil
		r.pending = &pending{entry: lone, body: body}
	} else {
		r.pending.reply = entry.Native
	}
	var text strings.Builder
	var of *compactionMetadata // of the last part that has some
	for i := range parts {
		switch parts[i].Type {
		case "text":
			if text.Len() > 0 {
				text.WriteByte('\n')
			}
			text.WriteString(parts[i].Text)
			of = cmp.Or(parts[i].Metadata[systemMark].Value.Compaction, of)
		case "step-finish":
			for k, v := range parts[i].Tokens.labels() {
				r.pending.entry.Label(k, v)
			}
		}
	}
	r.pending.body.Summary = text.String()
	r.noted(r.pending.body, of)
	r.flush()
}

// noted applies the metadata that contextd wrote to a compaction.
func (r *reader) noted(c *eventlog.Compaction, m *compactionMetadata) {
	if m == nil {
		return
	}
	m.Into(c)
	c.PreTokens, c.PostTokens = m.PreTokens, m.PostTokens
	if len(m.Kept) == 0 {
		return
	}
	for _, id := range m.Again {
		r.again[id] = true
	}
	var kept []int
	for _, id := range m.Kept {
		kept = append(kept, r.places[id]...)
	}
	slices.Sort(kept)
	c.KeptEventIDs = nil
	for _, place := range slices.Compact(kept) {
		c.KeptEventIDs = append(c.KeptEventIDs, r.sent[place])
	}
}

// flush appends the pending compaction, and the envelopes of its two messages.
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
