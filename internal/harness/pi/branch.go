package pi

import (
	"strconv"
	"strings"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// branch reads one way through the tree into a session.
type branch struct {
	out     *transcript.Builder
	session *transcript.SessionBuilder
	render  renderer
	sent    []sent // what became events
	index   int    // of the record that is read
	edits   transcript.OpenEdits
}

// sent is a record that became an event, for compactions to name.
type sent struct {
	index int    // of the record
	entry string // the record's own id
	event string
}

func newBranch(out *transcript.Builder, suffix string) *branch {
	b := &branch{out: out, session: out.Session(suffix), edits: transcript.OpenEdits{}}
	b.session.Label(transcript.LabelHarness, "pi")
	return b
}

// header reads the record that begins a file.
func (b *branch) header(l *line) {
	b.session.Label(transcript.LabelSessionID, l.rec.ID)
	b.session.Label(transcript.LabelWorkingDirectory, l.rec.CWD)
	b.session.Label(transcript.LabelParentSession, l.rec.ParentSession)
	if l.rec.Version > 0 {
		b.session.Label(transcript.LabelVersion, strconv.Itoa(l.rec.Version))
	}
	base := header(l.rec.ID, l.rec.CWD, "")
	b.session.SessionEnvelope(transcript.Difference(base, l.entry.Native))
}

// add reads a record, and keeps what its events do not say.
func (b *branch) add(l *line) {
	if l.rec.KeptOf != "" {
		b.render.wrote(l.rec.ID, l.entry.Time)
		return // the compaction says what it kept
	}
	from := b.session.Len()
	b.index = l.index
	if l.bad != nil {
		b.session.Unreadable(l.entry, l.bad)
	} else {
		b.record(l.entry, &l.rec)
	}
	events := b.session.Since(from)
	if len(events) > 0 && !kept(events) {
		if base, ok := b.render.entry(events); ok {
			b.session.Envelope(from, transcript.Difference(base, l.entry.Native, l.rec.Message.left()...))
		}
	}
	b.render.wrote(l.rec.ID, l.entry.Time)
}

// kept reports whether the events hold the entry unchanged.
func kept(events []eventlog.Event) bool {
	for _, e := range events {
		switch e.Body.(type) {
		case *eventlog.Custom, *eventlog.Compaction:
			return true
		}
	}
	return false
}

func (b *branch) record(entry transcript.Entry, rec *record) {
	var err error
	switch rec.Type {
	case "message":
		if rec.Message == nil {
			b.session.Keep(entry, "message-without-content")
			return
		}
		err = b.message(entry, rec.Message)
	case "custom_message":
		err = b.user(entry, rec.Content, injected)
	case "branch_summary":
		b.branchSummary(entry, rec)
	case "compaction":
		b.compaction(entry, rec)
	case "custom":
		b.custom(entry, rec)
	case "model_change", "thinking_level_change", "label", "session_info":
		b.session.Record(entry, rec.Type)
	default:
		b.session.Keep(entry, rec.Type)
	}
	if err != nil {
		b.session.Unreadable(entry, err)
	}
}

// append notes the message for compactions that keep it.
func (b *branch) append(entry transcript.Entry) {
	own := entry.ID
	if id := b.session.Append(entry); id != "" {
		b.sent = append(b.sent, sent{b.index, own, id})
	}
}

// branchSummary describes to the model a branch that the user came back from.
func (b *branch) branchSummary(entry transcript.Entry, rec *record) {
	if rec.Summary == "" {
		b.session.Record(entry, rec.Type)
		return
	}
	entry.Labels = map[string]string{transcript.LabelInjected: "true", labelType: rec.Type}
	entry.Body = &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: branchTold(rec.Summary)}}}
	b.append(entry)
}

// custom is an extension's entry, which no model sees; the writer's own ones hold
// what pi has no place for.
func (b *branch) custom(entry transcript.Entry, rec *record) {
	if rec.CustomType == compactionType {
		b.unread(entry, rec)
		return
	}
	if rec.CustomType != systemType || strings.Join(rec.Data.texts, "") == "" {
		b.session.Record(entry, rec.Type)
		return
	}
	m := &eventlog.Message{Role: eventlog.RoleSystem}
	for _, text := range rec.Data.texts {
		m.Blocks = append(m.Blocks, eventlog.Text{Text: text})
	}
	entry.Body = m
	b.append(entry)
}
