// Package opencode reads sessions that OpenCode exports: one JSON object with a
// list of messages, calls and results in one part. docs/harness/opencode.md
// describes the format and the mapping.
package opencode

import (
	"encoding/json"
	"io"
	"strconv"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Name of the harness.
const Name = "opencode"

// redacted stands in place of ids that a redaction pass took out.
const redacted = "REDACTED"

// Detect recognises a session by its first members.
func Detect(p transcript.Probe) bool {
	return p.Has("messages[].info.role") || p.Has("messages[].parts[].type") ||
		p.Has("info.id", "info.projectID") || p.Has("info.id", "info.directory")
}

type reader struct {
	out     *transcript.Builder
	session *transcript.SessionBuilder
	count   int
	pruned  []pruned
	// pending is a compaction whose summary is the next reply.
	pending *transcript.Entry
}

// Read reads a whole session.
func Read(in io.Reader) (transcript.Transcript, error) {
	out := transcript.NewBuilder(Name)
	r := &reader{out: out, session: out.Session("")}
	r.session.Label(transcript.LabelHarness, Name)
	if err := transcript.ReadObject(in, out.Warn, "messages", r.field, r.message); err != nil {
		return transcript.Transcript{}, err
	}
	r.flush()
	r.prune(0)
	return out.Finish()
}

func (r *reader) field(name string, value json.RawMessage, _ int) {
	if name != "info" {
		r.out.Skip("member " + name)
		return
	}
	var session struct {
		ID      string `json:"id"`
		Version string `json:"version"`
	}
	if transcript.Decode(value, &session) == nil {
		r.session.Label(transcript.LabelSessionID, session.ID)
		r.session.Label(transcript.LabelVersion, session.Version)
	}
}

func (r *reader) message(raw json.RawMessage, line int) {
	r.count++
	entry := transcript.Entry{Line: line, Native: raw, ID: "msg-" + strconv.Itoa(r.count)}
	var rec record
	if err := transcript.Decode(raw, &rec); err != nil {
		r.unreadable(entry, err)
		return
	}
	if rec.Info.ID != "" && rec.Info.ID != redacted {
		entry.ID = rec.Info.ID
	}
	entry.Time = at(rec.Info.Time.Created)
	r.prune(rec.Info.Time.Created)
	parts := make([]part, len(rec.Parts))
	for i, p := range rec.Parts {
		if err := transcript.Decode(p, &parts[i]); err != nil {
			r.unreadable(entry, err)
			return
		}
	}
	switch {
	case rec.Info.Role == "user":
		r.flush()
		r.user(entry, &rec, parts)
	case rec.Info.Role == "assistant" && string(rec.Info.Summary) == "true":
		r.summary(entry, parts)
	case rec.Info.Role == "assistant":
		r.flush()
		r.assistant(entry, &rec, parts)
	default:
		r.session.Keep(entry, "role-"+rec.Info.Role)
	}
}

func (r *reader) unreadable(entry transcript.Entry, err error) {
	r.out.Warn(entry.Line, "unexpected shape, kept as a custom event: %v", err)
	r.session.Custom(entry, "unreadable")
}

// summary is the reply in which the model sums up; with the request for it, it is
// the compaction.
func (r *reader) summary(entry transcript.Entry, parts []part) {
	if r.pending == nil {
		entry.Body = &eventlog.Compaction{NativeJSON: transcript.Compact(entry.Native)}
		r.pending = &entry
	}
	body, _ := r.pending.Body.(*eventlog.Compaction)
	for i := range parts {
		switch parts[i].Type {
		case "text":
			if body.Summary != "" {
				body.Summary += "\n"
			}
			body.Summary += parts[i].Text
		case "step-finish":
			r.pending.Labels = parts[i].Tokens.labels()
		}
	}
	r.flush()
}

// flush appends a compaction that waits for its summary.
func (r *reader) flush() {
	if r.pending != nil {
		r.session.Append(*r.pending)
		r.pending = nil
	}
}
