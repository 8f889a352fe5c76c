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
	entry.Time = transcript.ParseTime(rec.Timestamp)
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
	if e.Type != "token_count" || r.session.Len() == n {
		return nil
	}
	if usage, counted := r.meter.read(e.Info); counted {
		r.reply = ""
		for k, v := range maps.All(usage) {
			r.session.Annotate(n, k, v)
		}
	}
	return nil
}

// group returns the group of an item of the model's. Items of the model between two others belong to one
// model call.
func (r *reader) group(entry transcript.Entry) string {
	if r.reply == "" {
		r.reply = "reply-" + strconv.Itoa(entry.Line)
	}
	return r.reply
}

// counts are the tokens of one request, or of the whole session.
type counts struct {
	// Input is the whole prompt, the cached part included.
	Input      transcript.Count `json:"input_tokens"`
	Cached     transcript.Count `json:"cached_input_tokens"`
	CacheWrite transcript.Count `json:"cache_write_input_tokens"`
	Output     transcript.Count `json:"output_tokens"`
}

type tokenInfo struct {
	Total *counts `json:"total_token_usage"`
	Last  *counts `json:"last_token_usage"`
}

// meter derives the usage of each request from running totals. The harness repeats a total whenever something
// else in the record changes.
type meter struct {
	total counts
	last  counts
	begun bool
}

// read returns the usage labels for the requests since the total before; counted is false if there were none.
func (m *meter) read(info jsontext.Value) (labels map[string]string, counted bool) {
	var i tokenInfo
	if len(info) == 0 || transcript.Decode(info, &i) != nil || (i.Total == nil && i.Last == nil) {
		return nil, false
	}
	var used counts
	switch {
	case i.Total == nil: // of early versions
		if m.begun && *i.Last == m.last {
			return nil, false
		}
		used = *i.Last
		m.last = used
	case *i.Total == m.total:
		return nil, false
	case m.grew(*i.Total):
		used = i.Total.minus(m.total)
		m.total = *i.Total
	default: // the total was reset
		used = *i.Total
		if i.Last != nil {
			used = *i.Last
		}
		m.total = *i.Total
	}
	m.begun = true
	return transcript.Usage{Prompt: used.Input, CacheRead: used.Cached, CacheWrite: used.CacheWrite, Output: used.Output}.Labels(), true
}

// grew reports whether t may be a later state of the total.
func (m *meter) grew(t counts) bool {
	return t.Input >= m.total.Input && t.Cached >= m.total.Cached && t.CacheWrite >= m.total.CacheWrite && t.Output >= m.total.Output
}

func (c counts) minus(d counts) counts {
	return counts{Input: c.Input - d.Input, Cached: c.Cached - d.Cached, CacheWrite: c.CacheWrite - d.CacheWrite, Output: c.Output - d.Output}
}
