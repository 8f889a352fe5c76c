// Package dsh reads the logs of DeepSeek Harness: JSON Lines with one event of a session on each line.
// docs/harness/dsh.md describes the format and the mapping.
package dsh

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Name of the harness.
const Name = "dsh"

// labelParent is the harness's id of the session that began a subagent's.
const labelParent = Name + ".parent_session"

// Harness is DeepSeek Harness.
var Harness = transcript.Harness{Name: Name, Aliases: []string{"deepseek-harness"}, Detect: detect, Read: read}

// editors are the harness's own tools that change files.
var editors = transcript.Editors{"write": {"file_path"}, "edit": {"file_path"}}

func detect(p transcript.Probe) bool {
	return p.Has("seq", "time", "type") && p.Is("type", "turn/start", "step/start", "user/message", "agent/inbox/spliced", "request/header")
}

type record struct {
	Type string `json:"type"`
	Seq  int64  `json:"seq"`
	Time int64  `json:"time"`

	// Of the first line.
	ID     transcript.Word `json:"id"`
	CWD    transcript.Word `json:"cwd"`
	Parent transcript.Word `json:"parentSession"`

	Data    jsontext.Value             `json:"data"`
	Surface transcript.Maybe[replaced] `json:"surfaceOp"`
}

// replaced is the span of messages that an event takes the place of; other events are at the end.
type replaced struct {
	Op    string `json:"op"`
	Start int64  `json:"start"`
	End   int64  `json:"end"`
}

// message is what a user, the model or a tool said. In newer versions it is a member of the event's data.
type message struct {
	Content []jsontext.Value `json:"content"`
	Source  source           `json:"source"`

	// Of older versions.
	Provenance source `json:"provenance"`
	CallID     string `json:"callId"`
	IsError    bool   `json:"isError"`
}

type source struct {
	Kind   transcript.Word `json:"kind"`
	Plugin transcript.Word `json:"plugin"`
	Form   transcript.Word `json:"form"`
	Model  transcript.Word `json:"model"`
}

type part struct {
	Type      string           `json:"type"`
	Text      string           `json:"text"`
	ID        string           `json:"id"`
	Name      string           `json:"name"`
	Arguments jsontext.Value   `json:"arguments"`
	CallID    string           `json:"toolCallId"`
	Content   []jsontext.Value `json:"content"`
	IsError   bool             `json:"isError"`
}

type usage struct {
	Input   transcript.Count `json:"inputTokens"`
	Read    transcript.Count `json:"cacheReadTokens"`
	Written transcript.Count `json:"cacheWriteTokens"`
	Output  transcript.Count `json:"outputTokens"`
}

type reader struct {
	out     *transcript.Builder
	session *transcript.SessionBuilder
	edits   transcript.OpenEdits
	system  string
	model   string
	surface surface
}

func read(in io.Reader) (transcript.Transcript, error) {
	out := transcript.NewBuilder(Name, in)
	r := &reader{out: out, session: out.Session(""), edits: transcript.OpenEdits{}}
	r.session.Label(transcript.LabelHarness, Name)
	return out.Finish(transcript.ReadLines(in, out.Warn, r.record))
}

func (r *reader) record(l transcript.Record) {
	entry := transcript.Entry{Line: l.Line, ID: transcript.PositionID(l), Native: l.JSON}
	var rec record
	err := transcript.Decode(l.JSON, &rec)
	if rec.Time > 0 {
		entry.Time = time.UnixMilli(rec.Time).UTC()
	}
	switch {
	case err != nil:
	case rec.Type == "session":
		r.session.Label(transcript.LabelSessionID, string(rec.ID))
		r.session.Label(transcript.LabelWorkingDirectory, string(rec.CWD))
		r.session.Label(labelParent, string(rec.Parent))
	case rec.Type == "request/header":
		err = r.header(entry, &rec)
	case rec.Type == "request/context":
		var context struct {
			Model transcript.Word `json:"model"`
		}
		err = transcript.Decode(rec.Data, &context)
		r.model = cmp.Or(string(context.Model), r.model)
	case rec.Type == "user/message" || rec.Type == "assistant/message" || rec.Type == "tool/result":
		err = r.message(entry, &rec)
	case rec.Surface.Value.Op != "":
		r.session.Keep(entry, rec.Type)
	default:
		r.out.Skip(rec.Type)
	}
	if err != nil {
		r.session.Unreadable(entry, err)
	}
}

// header reads what every request from now on begins with.
func (r *reader) header(entry transcript.Entry, rec *record) error {
	var data struct {
		Header struct {
			System transcript.Word `json:"system"`
			Config struct {
				Model transcript.Word `json:"model"`
			} `json:"config"`
		} `json:"header"`
	}
	if err := transcript.Decode(rec.Data, &data); err != nil {
		return err
	}
	r.model = cmp.Or(string(data.Header.Config.Model), r.model)
	system := string(data.Header.System)
	if system == "" || system == r.system {
		r.out.Skip(rec.Type)
		return nil
	}
	r.system = system
	entry.Body = &eventlog.Message{Role: eventlog.RoleSystem, Blocks: []eventlog.Block{eventlog.Text{Text: system}}}
	r.session.Append(entry)
	return nil
}

func (r *reader) message(entry transcript.Entry, rec *record) error {
	var data struct {
		Message *message `json:"message"`
		Usage   usage    `json:"usage"`
	}
	var said message
	if err := transcript.Decode(rec.Data, &data); err != nil {
		return err
	}
	if data.Message != nil {
		said = *data.Message
	} else if err := transcript.Decode(rec.Data, &said); err != nil {
		return err
	}
	read := func(content []jsontext.Value) ([]eventlog.Block, error) { return r.blocks(entry, content) }
	if said.CallID != "" {
		read = given
	}
	blocks, err := read(said.Content)
	if err != nil {
		return err
	}
	m := &eventlog.Message{Role: eventlog.RoleUser, Blocks: blocks}
	switch span := rec.Surface.Value; {
	case span.Op == "replace" && rec.Type == "user/message":
		r.compaction(entry, rec, blocks)
		return nil
	case span.Op == "replace":
		r.replace(rec)
		r.session.Keep(entry, "replacement")
		return nil
	case len(blocks) == 0:
		r.session.Keep(entry, "empty-message")
		return nil
	case rec.Type == "assistant/message":
		u := data.Usage
		entry.Labels = transcript.Usage{Prompt: u.Input + u.Read + u.Written, CacheRead: u.Read, CacheWrite: u.Written, Output: u.Output}.Labels()
		m.Role, m.Model = eventlog.RoleAssistant, cmp.Or(string(said.Source.Model), string(said.Provenance.Model), r.model)
	case rec.Type == "tool/result":
		m.Role, m.Blocks = eventlog.RoleTool, r.results(&entry, &said, blocks)
	case said.Source.Kind != "user":
		entry.Label(transcript.LabelInjected, "true")
		if slices.Contains(standing, said.Source.Form) {
			entry.Label(transcript.LabelStanding, string(cmp.Or(said.Source.Plugin, said.Source.Kind)))
		}
	}
	entry.Body = m
	if id := r.session.Append(entry); id != "" {
		r.surface.add(rec.Seq, id)
	}
	return nil
}

// standing are the forms of texts that are valid until a newer one of the same source.
var standing = []transcript.Word{"snapshot", "instructions", "catalog"}

func (r *reader) blocks(entry transcript.Entry, content []jsontext.Value) (out []eventlog.Block, err error) {
	for _, raw := range content {
		var p part
		if err := transcript.Decode(raw, &p); err != nil {
			return nil, err
		}
		switch p.Type {
		case "text":
			out = append(out, eventlog.Text{Text: p.Text})
		case "reasoning":
			out = append(out, eventlog.Thinking{Text: p.Text})
		case "tool-call":
			call := eventlog.ToolCall{CallID: p.ID, Name: p.Name, Arguments: r.out.Arguments(entry.Line, p.ID, p.Arguments)}
			r.edits.Call(p.ID, editors.Files(p.Name, []byte(call.Arguments)))
			out = append(out, call)
		case "tool-result":
			inner, err := given(p.Content)
			if err != nil {
				return nil, err
			}
			out = append(out, eventlog.ToolResult{CallID: p.CallID, Content: inner, IsError: p.IsError})
		default:
			out = append(out, own(raw))
		}
	}
	return out, nil
}

// given is the content of a result.
func given(content []jsontext.Value) (out []eventlog.Block, err error) {
	for _, raw := range content {
		var p part
		if err := transcript.Decode(raw, &p); err != nil {
			return nil, err
		}
		if p.Type == "text" {
			out = append(out, eventlog.Text{Text: p.Text})
		} else {
			out = append(out, own(raw))
		}
	}
	return out, nil
}

// own is a part that has no other form in the log. A picture is in a file beside the log.
func own(raw jsontext.Value) eventlog.Block {
	return eventlog.ProviderBlock{Provider: Name, JSON: transcript.Compact(raw)}
}

// results returns the results of a tool's message, and labels the entry with the files that they changed.
func (r *reader) results(entry *transcript.Entry, said *message, blocks []eventlog.Block) []eventlog.Block {
	if said.CallID != "" {
		blocks = []eventlog.Block{eventlog.ToolResult{CallID: said.CallID, Content: blocks, IsError: said.IsError}}
	}
	var changed []string
	for _, b := range blocks {
		if result, ok := b.(eventlog.ToolResult); ok {
			if files := r.edits.Result(result.CallID); !result.IsError {
				changed = append(changed, files...)
			}
		}
	}
	entry.Labels = transcript.WithFilesChanged(entry.Labels, changed)
	return blocks
}

// compaction takes the place of a span of the surface; the other messages stay.
func (r *reader) compaction(entry transcript.Entry, rec *record, blocks []eventlog.Block) {
	c := &eventlog.Compaction{Summary: strings.Join(transcript.Texts(blocks), "\n"), NativeJSON: transcript.Compact(entry.Native)}
	if !r.replace(rec) {
		r.out.Warn(entry.Line, "a compaction of messages that are not in the file; it keeps none")
		r.surface = surface{}
		r.surface.add(rec.Seq, "")
	}
	for s := r.surface.first; s != nil; s = s.next {
		if s.id != "" {
			c.KeptEventIDs = append(c.KeptEventIDs, s.id)
		}
	}
	r.session.Boundary(entry, c)
}

// replace puts an event in the place of the span that it replaces, and reports whether the span is there. In place of a
// shorter result the log has the whole one.
func (r *reader) replace(rec *record) bool {
	return r.surface.replace(rec.Surface.Value.Start, rec.Surface.Value.End, rec.Seq, rec.Type != "user/message")
}
