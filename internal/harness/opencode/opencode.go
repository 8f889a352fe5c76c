// Package opencode reads and writes sessions as OpenCode exports and imports them: one JSON object with a
// list of messages, calls and results in one part. docs/harness/opencode.md
// describes the format and the mapping.
package opencode

import (
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Name of the harness.
const Name = "opencode"

// redacted is in place of ids that a redaction pass took out.
const redacted = "REDACTED"

// Harness is OpenCode.
var Harness = transcript.Harness{
	Name: Name, Detect: detect, Read: read, Write: write, NotKept: notKept, LabelUnseen: labelFailed,
}

// detect recognises a session by its first members.
func detect(p transcript.Probe) bool {
	return p.Has("messages[].info.role") || p.Has("messages[].parts[].type") ||
		p.Has("info.id", "info.projectID") || p.Has("info.id", "info.directory")
}

type reader struct {
	out     *transcript.Builder
	session *transcript.SessionBuilder
	headed  bool // info was read
	count   int
	pruned  []pruned
	// pending is a compaction whose summary is the next reply.
	pending *pending
	sent    []string // ids of the events that are messages, in order
	// again are the messages that say once more what a compaction of the writer's kept.
	again  map[string]bool
	render renderer
}

// read reads a whole session.
func read(in io.Reader) (transcript.Transcript, error) {
	out := transcript.NewBuilder(Name, in)
	r := &reader{out: out, session: out.Session(""), again: map[string]bool{}, render: renderer{warn: func(string, ...any) {}}}
	r.session.Label(transcript.LabelHarness, Name)
	err := transcript.ReadObject(in, out.Warn, "messages", r.field, r.message)
	r.flush()
	r.prune(0)
	return out.Finish(err)
}

func (r *reader) field(name string, value jsontext.Value, line int) {
	if name != "info" {
		r.out.Skip("member " + name)
		return
	}
	var session struct {
		ID        string `json:"id"`
		Version   string `json:"version"`
		Directory string `json:"directory"`
		ParentID  string `json:"parentID"`
	}
	if err := transcript.Decode(value, &session); err != nil {
		r.out.Warn(line, "unexpected shape of the session's info: %v", err)
		return
	}
	if r.headed {
		r.out.Warn(line, "the session's info occurs again; the first one was read")
		return
	}
	r.headed = true
	r.session.Label(transcript.LabelSessionID, session.ID)
	r.session.Label(transcript.LabelVersion, session.Version)
	r.session.Label(transcript.LabelWorkingDirectory, session.Directory)
	r.session.Label(transcript.LabelParentSession, session.ParentID)
	r.render.session, r.render.directory = session.ID, session.Directory
	base := sessionInfo(session.ID, session.Version, session.Directory, session.ParentID)
	r.session.SessionEnvelope(transcript.Difference(base, value))
}

func (r *reader) message(raw jsontext.Value, line int) {
	r.count++
	entry := transcript.Entry{Line: line, Native: raw, ID: "msg-" + strconv.Itoa(r.count)}
	var rec record
	if err := transcript.Decode(raw, &rec); err != nil {
		r.session.Unreadable(entry, err)
		return
	}
	if r.again[rec.Info.ID] {
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
			r.session.Unreadable(entry, err)
			return
		}
	}
	summary := rec.Info.Role == "assistant" && string(rec.Info.Summary) == "true"
	if !summary {
		r.flush()
	}
	from := r.session.Len()
	switch {
	case summary:
		r.summary(entry, parts)
		return
	case rec.Info.Role == "user":
		r.user(entry, &rec, parts)
	case rec.Info.Role == "assistant":
		r.assistant(entry, &rec, parts)
	default:
		r.session.Keep(entry, "role-"+rec.Info.Role)
	}
	r.envelope(from, rec.Info.Role, raw)
}

// envelope keeps what the events of a message do not say of it.
func (r *reader) envelope(from int, role string, raw jsontext.Value) {
	events := r.session.Since(from)
	switch {
	case r.pending != nil && len(events) == 0:
		r.pending.request = raw
		return
	case r.pending != nil:
		r.pending.entry.Labels = map[string]string{labelWithin: "true"}
	}
	if len(events) == 0 || whole(events) != "" {
		return
	}
	if _, ok := events[0].Body.(*eventlog.Compaction); ok {
		return // the writer's own
	}
	base := r.render.message(events, resultsOf(events))
	r.session.Envelope(from, transcript.Difference(base, raw, transcript.FieldsOf(notKept, "message/"+role)...))
}

// notKept is what a session written again may lack.
var notKept = []transcript.NotKept{
	{Entry: "message/user", Field: "info.summary", Reason: "the files that the turn changed, whole and often most of a file's bytes; the calls show what changed"},
	{Entry: "message/assistant", Field: "parts[].state.metadata", Reason: "what a tool shows the user, mostly its output once more; an exit code and a subagent's session are labels"},
	{Entry: "member/*", Reason: "members of the file besides info and messages"},
}

// What a session written again may lack of the messages of a user and of a model.
var (
	notKeptOfUser  = transcript.FieldsOf(notKept, "message/user")
	notKeptOfModel = transcript.FieldsOf(notKept, "message/assistant")
)
