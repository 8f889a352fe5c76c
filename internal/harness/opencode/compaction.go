package opencode

import (
	"cmp"
	"slices"
	"strconv"
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
	for i := range parts {
		switch parts[i].Type {
		case "text":
			if r.pending.body.Summary != "" {
				r.pending.body.Summary += "\n"
			}
			r.pending.body.Summary += parts[i].Text
			r.noted(r.pending.body, parts[i].Metadata[systemMark].Value.Compaction)
		case "step-finish":
			for k, v := range parts[i].Tokens.labels() {
				r.pending.entry.Label(k, v)
			}
		}
	}
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

// pruned is a result that the harness no longer sends. The part has only the time of the pruning; the event
// is inserted at that time.
type pruned struct {
	when   int64
	callID string
}

// prunedType is the type of the events that record which results were pruned.
const (
	prunedKind = "pruned-results"
	prunedType = Name + "." + prunedKind
)

// prune appends an event for every pruning up to a time in milliseconds, or for all that remain if it is 0. Results
// that were pruned together share an event.
func (r *reader) prune(until int64) {
	slices.SortStableFunc(r.pruned, func(a, b pruned) int { return cmp.Compare(a.when, b.when) })
	for len(r.pruned) > 0 && (until == 0 || r.pruned[0].when <= until) {
		when := r.pruned[0].when
		var quoted []string
		for len(r.pruned) > 0 && r.pruned[0].when == when {
			quoted = append(quoted, transcript.Quote(r.pruned[0].callID))
			r.pruned = r.pruned[1:]
		}
		ms := strconv.FormatInt(when, 10)
		r.session.Custom(transcript.Entry{
			ID:     "pruned-" + ms,
			Time:   at(when),
			Native: []byte(`{"time":` + ms + `,"call_ids":[` + strings.Join(quoted, ",") + `]}`),
		}, prunedKind)
	}
}
