package claude

import (
	"strings"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// compaction holds a boundary back until its summary has come: the two are one
// event.
func (r *reader) compaction(rec *record, entry transcript.Entry) {
	r.flush()
	body := &eventlog.Compaction{Trigger: eventlog.TriggerUnspecified, NativeJSON: string(entry.Native)}
	if m := rec.CompactMetadata; m != nil {
		body.PreTokens, body.PostTokens = m.PreTokens, m.PostTokens
		body.Trigger, body.Mode = trigger(m.Trigger), m.Trigger
	}
	entry.Body, entry.Native = body, nil
	r.pending = &boundary{entry: entry, body: body, into: r.session(rec)}
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

// summary is the text that replaced the conversation. One without a boundary, as
// old versions wrote it, makes a compaction of its own.
func (r *reader) summary(session *transcript.SessionBuilder, rec *record, entry transcript.Entry) {
	if r.pending == nil || r.pending.into != session {
		r.flush()
		body := &eventlog.Compaction{NativeJSON: string(entry.Native)}
		entry.Body, entry.Native = body, nil
		r.pending = &boundary{entry: entry, body: body, into: session}
	}
	blocks, err := content.AnthropicBlocks(rec.Message.Content)
	if err != nil {
		r.out.Warn(entry.Line, "summary of the compaction has an unexpected shape: %v", err)
	}
	var text []string
	for _, b := range blocks {
		if t, ok := b.(eventlog.Text); ok {
			text = append(text, t.Text)
		}
	}
	r.pending.body.Summary = strings.Join(text, "\n")
	r.flush()
}

// flush puts a boundary into its session.
func (r *reader) flush() {
	if r.pending == nil {
		return
	}
	r.pending.into.Append(r.pending.entry)
	r.pending = nil
}
