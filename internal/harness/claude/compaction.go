package claude

import (
	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// labelBetween is "true" on events whose record is between a boundary and its summary in the file. In the log
// they come before the compaction.
const labelBetween = "claude.between"

// labelReplayed is "true" on a compaction after which the harness wrote earlier messages again. Only that
// repetition says that these were kept.
const labelReplayed = "claude.replayed"

// The subtypes of the records that mark a boundary: the harness's own, and the one that contextd writes for another
// harness's compaction without a summary.
const (
	boundarySubtype = "compact_boundary"
	unreadSubtype   = "contextd_boundary"
)

// boundary is a compaction that is being read, or was read.
type boundary struct {
	entry transcript.Entry
	body  *eventlog.Compaction
	// kept returns the ids of the events that the compaction kept. It must be called when all records before
	// the boundary were read.
	kept func() []string
	// since are the events of queued prompts between the boundary and its summary. They come before the compaction in
	// the log, but the harness sent them to the model after it.
	since []string
	// lists is set if the marker has a list for kept messages. A summary without a marker has none, so that
	// messages which are written again after it cannot be recorded as kept.
	lists bool
	// replayed are earlier events that the harness wrote again between the boundary and its summary.
	replayed []string
	// summary is the record that holds the summary.
	summary []byte
	// place is the index of its event, when that is in the session.
	place int
	// has are the ids in KeptEventIDs; nil until keep is first called.
	has map[string]bool
}

// keep adds events to those that the compaction kept, and reports whether any was new.
func (b *boundary) keep(ids ...string) (more bool) {
	if b.has == nil {
		b.has = map[string]bool{}
		for _, id := range b.body.KeptEventIDs {
			b.has[id] = true
		}
	}
	for _, id := range ids {
		if !b.has[id] {
			b.has[id], more = true, true
			b.body.KeptEventIDs = append(b.body.KeptEventIDs, id)
		}
	}
	return more
}

// replayed handles a message that is written again: the compaction before it kept it.
func (r *reader) replayed(session *transcript.SessionBuilder, uuid string) {
	at := r.of(session)
	id := at.events[uuid]
	switch {
	case id == "" || at.since[uuid]:
	case at.pending != nil:
		if at.pending.lists {
			at.pending.replayed = append(at.pending.replayed, id)
		}
	case at.last != nil && at.last.lists && at.last.keep(id):
		session.Annotate(at.last.place, labelReplayed, "true")
	}
}

// compaction makes a boundary pending until its summary is read, because the two become one event.
func (r *reader) compaction(rec *record, entry transcript.Entry) {
	session := r.session(rec)
	r.flush(session)
	body := &eventlog.Compaction{Trigger: eventlog.TriggerUnspecified, NativeJSON: string(entry.Native)}
	if m := rec.CompactMetadata; m != nil {
		body.PreTokens, body.PostTokens = m.PreTokens, m.PostTokens
		body.Trigger, body.Mode = trigger(m.Trigger), m.Trigger
	}
	entry.Body, entry.Native = body, nil
	r.begin(session, rec)
	r.of(session).pending = &boundary{entry: entry, body: body, kept: r.kept(rec, session, entry.Line), lists: rec.CompactMetadata != nil}
}

// kept returns a function that finds the events of the session that a compaction kept. Where the harness
// wrote such messages again before the boundary, the repetitions were dropped: the ids are those of the
// first.
func (r *reader) kept(rec *record, session *transcript.SessionBuilder, line int) func() []string {
	m, key := rec.CompactMetadata, r.chains.key(rec)
	switch {
	case m == nil:
	case m.Messages != nil:
		for _, uuid := range m.Messages.UUIDs {
			r.parents.preserve(uuid, line)
		}
		return func() []string { return r.eventsOf(session, m.Messages.UUIDs) }
	case m.Segment != nil:
		r.parents.preserve(m.Segment.Head, line)
		r.parents.preserve(m.Segment.Tail, line)
		return func() []string {
			uuids := r.parents.chain(key, m.Segment.Head, m.Segment.Tail)
			if uuids == nil {
				r.out.Warn(line, "the messages that the compaction kept are no chain")
			}
			return r.eventsOf(session, uuids)
		}
	}
	return nil
}

// eventsOf returns the ids of the messages with these uuids, in the session's order.
func (r *reader) eventsOf(session *transcript.SessionBuilder, uuids []string) []string {
	events := r.of(session).events
	ids := make([]string, len(uuids))
	for i, uuid := range uuids {
		ids[i] = events[uuid]
	}
	return session.InOrder(ids)
}

func trigger(s string) eventlog.CompactionTrigger {
	switch s {
	case "auto":
		return eventlog.TriggerThreshold
	case "manual":
		return eventlog.TriggerManual
	default:
		return eventlog.TriggerUnspecified
	}
}

// summary reads the record with the summary. If there is no boundary before it, as in files of old versions, the
// summary is a compaction by itself.
func (r *reader) summary(session *transcript.SessionBuilder, rec *record, entry transcript.Entry) {
	native := string(r.native(rec, entry.Native))
	at := r.of(session)
	if rec.UUID != "" {
		if at.summaries[rec.UUID] == string(rec.Message.Content) {
			r.out.DropDuplicate()
			return
		}
		at.summaries[rec.UUID] = string(rec.Message.Content)
	}
	if at.pending == nil {
		body := &eventlog.Compaction{NativeJSON: native}
		entry.Body, entry.Native = body, nil
		at.pending = &boundary{entry: entry, body: body}
	} else {
		at.pending.summary = []byte(native)
	}
	blocks, err := content.AnthropicBlocks(rec.Message.Content)
	if err != nil {
		r.out.Warn(entry.Line, "summary of the compaction has an unexpected shape: %v", err)
	}
	at.pending.body.Summary = said(blocks)
	r.flush(session)
}

// flush appends the pending boundary to its session, with or without a summary.
func (r *reader) flush(session *transcript.SessionBuilder) {
	p := r.of(session).pending
	if p == nil {
		return
	}
	r.of(session).pending = nil
	if p.kept != nil {
		p.body.KeptEventIDs = p.kept()
	}
	p.body.KeptEventIDs = append(p.body.KeptEventIDs, p.since...)
	if p.keep(p.replayed...) {
		p.entry.Label(labelReplayed, "true")
	}
	n := session.Len()
	session.Append(p.entry)
	at := r.of(session)
	p.place, at.last, at.since = n, p, map[string]bool{}
	if events := session.Since(n); len(events) == 1 && p.summary != nil {
		around := envelopeOf(session.Labels())
		base := around.summary(&events[0], p.body.Summary)
		session.Envelope(n, transcript.Present(transcript.Difference(base, p.summary)))
	}
}
