// Package claude reads the transcripts of Claude Code: JSON Lines, one record a
// line. docs/harness/claude.md describes the format and the mapping.
package claude

import (
	"io"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Name of the harness.
const Name = "claude"

const syntheticModel = "<synthetic>"

// bookkeeping are the types of record that no model ever saw.
var bookkeeping = map[string]bool{
	"progress": true, "file-history-snapshot": true, "summary": true, "queue-operation": true,
	"last-prompt": true, "custom-title": true, "ai-title": true, "mode": true, "permission-mode": true,
	"pr-link": true, "agent-name": true, "agent-color": true, "agent-setting": true, "tag": true,
	"system/turn_duration": true, "system/stop_hook_summary": true,
}

type reader struct {
	out    *transcript.Builder
	main   *transcript.SessionBuilder
	chains sidechains
	// pending is a compaction boundary whose summary has not come yet.
	pending *boundary
	unknown map[string]bool
}

// boundary is a compaction on its way to the session that it stands in.
type boundary struct {
	entry transcript.Entry
	body  *eventlog.Compaction
	into  *transcript.SessionBuilder
}

// Read reads a whole transcript. Memory grows with the conversation, not with the
// records around it.
func Read(in io.Reader) (transcript.Transcript, error) {
	out := transcript.NewBuilder(Name)
	r := &reader{out: out, main: out.Session(""), unknown: map[string]bool{}}
	r.main.Label(transcript.LabelHarness, "claude-code")
	r.chains.init(out)
	if err := transcript.ReadLines(in, out.Warn, r.record); err != nil {
		return transcript.Transcript{}, err
	}
	r.flush()
	return out.Finish()
}

func (r *reader) record(line transcript.Record) error {
	var rec record
	entry := transcript.Entry{Line: line.Line, Native: line.JSON}
	if err := line.Decode(&rec); transcript.Malformed(err) {
		return err
	} else if err != nil {
		r.out.Warn(line.Line, "unexpected shape, kept as a custom event: %v", err)
		r.custom(r.main, entry, line, "unreadable")
		return nil
	}
	entry.ID, entry.Time = rec.UUID, transcript.ParseTime(rec.Timestamp)
	if entry.ID == "" {
		entry.ID = transcript.PositionID(line)
	}
	kind := rec.Type
	if rec.Subtype != "" {
		kind += "/" + rec.Subtype
	}
	switch {
	case (rec.Type == "user" || rec.Type == "assistant") && rec.Message != nil:
		r.main.Label(transcript.LabelSessionID, rec.SessionID)
		r.main.Label(transcript.LabelVersion, rec.Version)
		r.conversation(&rec, entry)
	case kind == "system/compact_boundary":
		r.compaction(&rec, entry)
	case rec.Type == "progress" && r.subagent(&rec, entry):
	case bookkeeping[kind] || bookkeeping[rec.Type]:
		r.out.Skip(kind)
	default:
		if rec.Type != "system" && rec.Type != "attachment" && !r.unknown[rec.Type] {
			r.unknown[rec.Type] = true
			r.out.Warn(line.Line, "records of the unknown type %q are kept as custom events", rec.Type)
		}
		r.custom(r.session(&rec), entry, line, rec.Type+subtype(rec.Subtype))
	}
	return nil
}

func subtype(s string) string {
	if s == "" {
		return ""
	}
	return "." + s
}

func (r *reader) custom(to *transcript.SessionBuilder, entry transcript.Entry, line transcript.Record, kind string) {
	if entry.ID == "" {
		entry.ID = transcript.PositionID(line)
	}
	to.Custom(entry, kind)
}

func (r *reader) conversation(rec *record, entry transcript.Entry) {
	session := r.session(rec)
	if rec.IsCompactSummary {
		r.summary(session, rec, entry)
		return
	}
	r.flush()
	if rec.IsAPIErrorMessage {
		// The harness tells the user that a request failed; no model wrote it.
		session.Custom(entry, "api-error")
		return
	}
	blocks, err := content.AnthropicBlocks(rec.Message.Content)
	if err != nil {
		r.out.Warn(entry.Line, "unexpected shape, kept as a custom event: %v", err)
		session.Custom(entry, "unreadable")
		return
	}
	m := &eventlog.Message{Role: role(rec.Type, blocks), Blocks: blocks}
	entry.Body = m
	if m.Role == eventlog.RoleAssistant {
		m.GroupID, m.Model = rec.Message.ID, rec.Message.Model
		entry.Labels = rec.Message.Usage.labels()
	}
	if rec.IsMeta || rec.Message.Model == syntheticModel {
		entry.Labels = map[string]string{transcript.LabelInjected: "true"}
	}
	r.chains.note(rec, session == r.main, blocks)
	session.Append(entry)
}

// role tells a user's message from one that brings results alone.
func role(kind string, blocks []eventlog.Block) eventlog.Role {
	if kind == "assistant" {
		return eventlog.RoleAssistant
	}
	for _, b := range blocks {
		if _, ok := b.(eventlog.ToolResult); !ok {
			return eventlog.RoleUser
		}
	}
	if len(blocks) == 0 {
		return eventlog.RoleUser
	}
	return eventlog.RoleTool
}

// session says which conversation a record belongs to.
func (r *reader) session(rec *record) *transcript.SessionBuilder {
	if !rec.IsSidechain {
		return r.main
	}
	return r.chains.session(rec)
}
