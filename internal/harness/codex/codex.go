// Package codex reads and writes the rollouts of Codex CLI: JSON Lines with response items and records
// between them. docs/harness/codex.md describes the format and the mapping.
package codex

import (
	"io"
	"maps"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Name of the harness.
const Name = "codex"

// format is the value of LabelHarness in the harness's own sessions.
const format = "codex-rollout"

// labelBare is "true" on sessions of early versions, whose items have no envelope.
const labelBare = "codex.bare"

// Harness is Codex CLI.
var Harness = transcript.Harness{
	Name: Name, Aliases: []string{format}, Detect: detect, Read: read, Write: write, NotKept: notKept, Boundary: boundary,
	Branches: &transcript.Branches{Left: left, Follows: rollsBack},
}

// detect recognises a rollout by its first records.
func detect(p transcript.Probe) bool {
	if p.Is("type", "session_meta", "response_item", "event_msg", "turn_context", compactedType) && p.Has("type", "payload") {
		return true
	}
	return p.Has("id", "timestamp", "instructions") || (p.Is("type", "function_call", "function_call_output") && p.Has("type", "call_id"))
}

type reader struct {
	out     *transcript.Builder
	session *transcript.SessionBuilder
	model   string
	// reply is the group of the model's current reply; empty if its next item begins another.
	reply string
	meter meter
	// items are the ids of events by the key of their item, to find what a compaction lists.
	items map[string]string
	// asked are the user's messages that are in the prompt now.
	asked []asked
	heard heard
	// begun is set if one of the session's first looked events is a message of a human or the model.
	begun  bool
	looked int
	// searches are the ids of calls of a search that the provider made, for which the file has no ids.
	searches searches
}

// read reads a whole rollout.
func read(in io.Reader) (transcript.Transcript, error) {
	out := transcript.NewBuilder(Name, in)
	r := &reader{out: out, session: out.Session(""), items: map[string]string{}}
	r.session.Label(transcript.LabelHarness, format)
	return out.Finish(transcript.ReadLines(in, out.Warn, r.record))
}

func (r *reader) record(line transcript.Record) {
	entry := transcript.Entry{Line: line.Line, Native: line.JSON, ID: transcript.PositionID(line)}
	var rec record
	if err := transcript.Decode(line.JSON, &rec); err != nil {
		r.session.Unreadable(entry, err)
		return
	}
	entry.Time = transcript.ParseTime(string(rec.Timestamp))
	if len(rec.Payload) == 0 {
		if r.session.Len() == 0 {
			r.session.Label(labelBare, "true")
		}
		rec.Payload = line.JSON
		if rec.Type != "" {
			rec.Type = "response_item"
		}
	}
	var err error
	switch rec.Type {
	case "response_item":
		err = r.responseItem(entry, rec.Payload, rec.Notes)
	case "session_meta", "":
		err = r.meta(entry, rec.Payload)
	case "turn_context":
		var c turnContext
		if err = transcript.Decode(rec.Payload, &c); err == nil {
			r.turn(&c)
			r.session.Record(entry, rec.Type)
		}
	case compactedType:
		err = r.compacted(entry, rec.Payload, rec.Notes)
	case "event_msg":
		if rec.boundary() {
			r.unread(entry, rec.Notes.Compaction)
			return
		}
		err = r.event(entry, rec.Payload)
	case usageRecord:
		err = r.usage(entry, rec.Payload)
	case interAgent:
		err = r.communication(entry, rec.Payload)
	case "world_state", "inter_agent_communication_metadata", "retained_context", "security_risk_score", "realtime_item":
		r.session.Record(entry, rec.Type) // no model sees it
	default:
		r.session.Keep(entry, rec.Type)
	}
	if err != nil {
		r.session.Unreadable(entry, err)
	}
}

// append appends a record as a message with an envelope. It returns the event's id, or "" if there is none.
func (r *reader) append(entry transcript.Entry) string {
	return r.session.AppendRead(entry, func(event *eventlog.Event, m *eventlog.Message) jsontext.Value {
		return envelopeOf(r.session.Labels()).line(event, m) // null for blocks that make no item
	})
}

// turn handles the record that begins a turn of the user.
func (r *reader) turn(c *turnContext) {
	r.reply = ""
	if c.Model != "" {
		r.model = c.Model
	}
}

// meta reads the head of a session. Only the first counts; a resumed rollout repeats it.
func (r *reader) meta(entry transcript.Entry, payload jsontext.Value) error {
	var m sessionMeta
	if err := transcript.Decode(payload, &m); err != nil {
		return err
	}
	if r.session.Len() == 0 {
		r.session.Label(transcript.LabelSessionID, m.ID)
		r.session.Label(transcript.LabelVersion, m.CLIVersion)
		r.session.Label(transcript.LabelWorkingDirectory, m.CWD)
		r.session.Label(transcript.LabelGitBranch, m.Git.Branch)
	}
	text := m.Instructions
	if m.BaseInstructions != nil {
		text = m.BaseInstructions.Text
	}
	if text == "" || r.session.Len() > 0 {
		r.session.Record(entry, "session_meta")
		return nil
	}
	entry.Labels = map[string]string{labelItem: itemMeta}
	entry.Body = &eventlog.Message{Role: eventlog.RoleSystem, Blocks: []eventlog.Block{eventlog.Text{Text: text}}}
	r.append(entry)
	return nil
}

// event reads a record of what the terminal showed. Nearly all of them repeat response items.
func (r *reader) event(entry transcript.Entry, payload jsontext.Value) error {
	var e eventMessage
	if err := transcript.Decode(payload, &e); err != nil {
		return err
	}
	if e.Type == userMessage && r.userMessage(entry, &e) {
		return nil
	}
	if transcript.Drops(notKept, "event_msg/"+e.Type) {
		r.out.Skip("event_msg/" + e.Type)
		return nil
	}
	entry.Native = transcript.Without(entry.Native, transcript.FieldsOf(notKept, "event_msg/"+e.Type)...)
	n := r.session.Len()
	r.session.Record(entry, "event_msg."+e.Type)
	if r.session.Len() == n {
		return nil
	}
	switch e.Type {
	case rolledBack:
		r.reply = ""
		r.heard.clear()
		r.asked = r.asked[:len(r.asked)-min(len(r.asked), max(e.Turns, 0))]
	case "token_count":
		if usage, counted := r.meter.read(e.Info); counted {
			r.counted(n, usage)
		}
	}
	return nil
}

// usage reads the record of a request's usage, which newer versions write besides the running totals.
func (r *reader) usage(entry transcript.Entry, payload jsontext.Value) error {
	var of struct {
		Usage *counts `json:"usage"`
	}
	if err := transcript.Decode(payload, &of); err != nil {
		return err
	}
	n := r.session.Len()
	r.session.Record(entry, usageRecord)
	if of.Usage != nil && r.session.Len() > n && r.meter.request() {
		r.counted(n, of.Usage.labels())
	}
	return nil
}

// counted sets the usage of the reply that the event at index n ends.
func (r *reader) counted(n int, usage map[string]string) {
	r.reply = ""
	for k, v := range maps.All(usage) {
		r.session.Annotate(n, k, v)
	}
}

// group returns the group of an item of the model's. Items of the model between two others belong to one
// model call.
func (r *reader) group(entry transcript.Entry) string {
	r.meter.reply()
	if r.reply == "" {
		r.reply = "reply-" + strconv.Itoa(entry.Line)
	}
	return r.reply
}
