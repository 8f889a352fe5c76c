// Package codex reads the rollouts of Codex CLI: JSON Lines of response items and
// what stands between them. docs/harness/codex.md describes the format and the
// mapping.
package codex

import (
	"encoding/json"
	"io"
	"strconv"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Name of the harness.
const Name = "codex"

// Detect recognises a rollout by its first records.
func Detect(p transcript.Probe) bool {
	if p.Is("type", "session_meta", "response_item", "event_msg", "turn_context", "compacted") && p.Has("type", "payload") {
		return true
	}
	return p.Has("id", "timestamp", "instructions") || (p.Is("type", "function_call", "function_call_output") && p.Has("type", "call_id"))
}

type reader struct {
	out     *transcript.Builder
	session *transcript.SessionBuilder
	model   string
	// reply is the group of the model's items; empty before its next item.
	reply string
	usage string // the last one kept
	// users are the ids of user messages by their text, for compactions to name.
	users map[string]string
}

// Read reads a whole rollout.
func Read(in io.Reader) (transcript.Transcript, error) {
	out := transcript.NewBuilder(Name)
	r := &reader{out: out, session: out.Session(""), users: map[string]string{}}
	r.session.Label(transcript.LabelHarness, "codex-rollout")
	if err := transcript.ReadLines(in, out.Warn, r.record); err != nil {
		return transcript.Transcript{}, err
	}
	return out.Finish()
}

func (r *reader) record(line transcript.Record) error {
	entry := transcript.Entry{Line: line.Line, Native: line.JSON, ID: transcript.PositionID(line)}
	var rec record
	if err := line.Decode(&rec); transcript.Malformed(err) {
		return err
	} else if err != nil {
		r.unreadable(entry, err)
		return nil
	}
	entry.Time = transcript.ParseTime(rec.Timestamp)
	if len(rec.Payload) == 0 {
		rec.Payload = line.JSON
		if rec.Type != "" {
			rec.Type = "response_item"
		}
	}
	var err error
	switch rec.Type {
	case "response_item":
		err = r.responseItem(entry, rec.Payload)
	case "session_meta", "":
		err = r.meta(entry, rec.Payload)
	case "turn_context":
		var c turnContext
		if err = transcript.Decode(rec.Payload, &c); err == nil && c.Model != "" {
			r.model = c.Model
		}
		r.out.Skip(rec.Type)
	case "compacted":
		err = r.compacted(entry, rec.Payload)
	case "event_msg":
		err = r.event(entry, rec.Payload)
	default:
		r.session.Keep(entry, rec.Type)
	}
	if err != nil {
		r.unreadable(entry, err)
	}
	return nil
}

func (r *reader) unreadable(entry transcript.Entry, err error) {
	r.out.Warn(entry.Line, "unexpected shape, kept as a custom event: %v", err)
	r.session.Custom(entry, "unreadable")
}

// meta begins the session, once; a resumed rollout repeats it.
func (r *reader) meta(entry transcript.Entry, payload json.RawMessage) error {
	var m sessionMeta
	if err := transcript.Decode(payload, &m); err != nil {
		return err
	}
	r.session.Label(transcript.LabelSessionID, m.ID)
	r.session.Label(transcript.LabelVersion, m.CLIVersion)
	text := m.Instructions
	if m.BaseInstructions != nil {
		text = m.BaseInstructions.Text
	}
	if text == "" || r.session.Len() > 0 {
		r.out.Skip("session_meta")
		return nil
	}
	entry.Body = &eventlog.Message{Role: eventlog.RoleSystem, Blocks: []eventlog.Block{eventlog.Text{Text: text}}}
	r.session.Append(entry)
	return nil
}

// event reads what the terminal was told. Nearly all of it says again what the
// response items say.
func (r *reader) event(entry transcript.Entry, payload json.RawMessage) error {
	var e eventMessage
	if err := transcript.Decode(payload, &e); err != nil {
		return err
	}
	switch e.Type {
	case "token_count":
		usage := transcript.Compact(e.Info)
		if len(e.Info) == 0 || usage == "null" || usage == r.usage {
			break
		}
		r.usage = usage
		entry.Native = []byte(usage)
		r.session.Custom(entry, "token-count")
		return nil
	case "error", "stream_error", "turn_aborted", "context_compacted":
		r.session.Custom(entry, e.Type)
		return nil
	}
	r.out.Skip("event_msg/" + e.Type)
	return nil
}

// compacted is the boundary: its list replaced the prompt so far. The summary may
// be the provider's secret; then only the marker holds it.
func (r *reader) compacted(entry transcript.Entry, payload json.RawMessage) error {
	var c compacted
	if err := transcript.Decode(payload, &c); err != nil {
		return err
	}
	body := &eventlog.Compaction{Summary: c.Message, NativeJSON: transcript.Compact(entry.Native)}
	for _, raw := range c.ReplacementHistory {
		var it item
		if transcript.Decode(raw, &it) != nil || it.Type != "message" {
			continue
		}
		if id := r.users[it.Role+"\n"+textOf(it.Content)]; id != "" {
			body.KeptEventIDs = append(body.KeptEventIDs, id)
		}
	}
	r.reply = ""
	entry.Body, entry.Native = body, nil
	r.session.Append(entry)
	return nil
}

// group is the model call that an item of the model belongs to: everything from
// the model between two things that are not.
func (r *reader) group(entry transcript.Entry) string {
	if r.reply == "" {
		r.reply = "reply-" + strconv.Itoa(entry.Line)
	}
	return r.reply
}
