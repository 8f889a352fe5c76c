// Package kimi reads the logs of Kimi Code: JSON Lines with one event of the agent's loop on each line.
// docs/harness/kimi.md describes the format and the mapping.
package kimi

import (
	"cmp"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Name of the harness.
const Name = "kimi"

// Harness is Kimi Code.
var Harness = transcript.Harness{Name: Name, Aliases: []string{"kimi-code"}, Detect: detect, Instead: instead, Read: read}

// editors are the harness's own tools that change files.
var editors = transcript.Editors{"Edit": {"path", "file_path"}, "Write": {"path", "file_path"}}

// detect recognises a log by its first line, or by a line about the model's context.
func detect(p transcript.Probe) bool {
	return p.Has("protocol_version", "created_at") && p.Is("type", "metadata") || p.Is("type", "context.append_message", "context.append_loop_event")
}

// instead recognises the log of a Kimi CLI before protocol 1.4, which has what the user was shown.
func instead(p transcript.Probe) string {
	if p.Has("message.type", "message.payload") && p.Is("message.type", "TurnBegin", "StepBegin") {
		return "this is what Kimi CLI shows to its user: import context.jsonl of the same folder, which has what its model saw"
	}
	return ""
}

type record struct {
	Type string         `json:"type"`
	Time jsontext.Value `json:"time"`

	// Of config.update and profile.bind.
	CWD    transcript.Word `json:"cwd"`
	Model  transcript.Word `json:"modelAlias"`
	System transcript.Word `json:"systemPrompt"`

	Message transcript.Maybe[message] `json:"message"`
	Event   transcript.Maybe[event]   `json:"event"`

	// Of context.apply_compaction.
	Summary string           `json:"summary"`
	Given   string           `json:"contextSummary"`
	Before  *uint64          `json:"tokensBefore"`
	After   *uint64          `json:"tokensAfter"`
	Kept    transcript.Count `json:"keptUserMessageCount"`
}

type message struct {
	Role    string         `json:"role"`
	Content jsontext.Value `json:"content"`
	Calls   []struct {
		ID        string         `json:"id"`
		Name      string         `json:"name"`
		Arguments jsontext.Value `json:"arguments"`
	} `json:"toolCalls"`
	CallID string `json:"toolCallId"`
	Origin struct {
		Kind string `json:"kind"`
	} `json:"origin"`
}

// event is what happened in one step of the loop, which is one reply of the model with the results of its calls.
type event struct {
	Type   string         `json:"type"`
	UUID   string         `json:"uuid"`
	Step   string         `json:"stepUuid"`
	Part   jsontext.Value `json:"part"`
	CallID string         `json:"toolCallId"`
	Name   string         `json:"name"`
	Args   jsontext.Value `json:"args"`
	Result struct {
		Output  jsontext.Value  `json:"output"`
		Note    transcript.Word `json:"note"`
		IsError bool            `json:"isError"`
	} `json:"result"`
	Usage struct {
		Other   transcript.Count `json:"inputOther"`
		Read    transcript.Count `json:"inputCacheRead"`
		Written transcript.Count `json:"inputCacheCreation"`
		Output  transcript.Count `json:"output"`
	} `json:"usage"`
}

type reader struct {
	out     *transcript.Builder
	session *transcript.SessionBuilder
	edits   transcript.OpenEdits
	model   string
	system  transcript.Word
	// humans are the ids of the messages of a human, all of which the last compaction may have kept.
	humans []string
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
	if err := transcript.Decode(l.JSON, &rec); err != nil {
		r.session.Unreadable(entry, err)
		return
	}
	var milliseconds int64
	if transcript.Decode(rec.Time, &milliseconds) == nil && milliseconds > 0 {
		entry.Time = time.UnixMilli(milliseconds).UTC()
	}
	var err error
	switch {
	case rec.Type == "config.update" || rec.Type == "profile.bind":
		r.configure(entry, &rec)
	case rec.Type == "context.append_message" && rec.Message.Value.Role != "":
		err = r.message(entry, &rec.Message.Value)
	case rec.Type == "context.append_loop_event":
		err = r.event(entry, &rec.Event.Value)
	case rec.Type == "context.apply_compaction":
		r.compaction(entry, &rec)
	case strings.HasPrefix(rec.Type, "context."):
		r.session.Keep(entry, rec.Type)
	default:
		r.out.Skip(rec.Type)
	}
	if err != nil {
		r.session.Unreadable(entry, err)
	}
}

// configure reads the settings: the system prompt of the requests from now on, the model, the directory.
func (r *reader) configure(entry transcript.Entry, rec *record) {
	r.session.Label(transcript.LabelWorkingDirectory, string(rec.CWD))
	r.model = cmp.Or(string(rec.Model), r.model)
	if rec.System == "" || rec.System == r.system {
		return
	}
	r.system = rec.System
	entry.Body = &eventlog.Message{Role: eventlog.RoleSystem, Blocks: []eventlog.Block{eventlog.Text{Text: string(rec.System)}}}
	r.session.Append(entry)
}

var roles = map[string]eventlog.Role{"user": eventlog.RoleUser, "assistant": eventlog.RoleAssistant, "system": eventlog.RoleSystem, "tool": eventlog.RoleTool}

func (r *reader) message(entry transcript.Entry, m *message) error {
	blocks, err := parts(m.Content)
	if err != nil {
		return err
	}
	said := &eventlog.Message{Role: roles[m.Role], Blocks: blocks}
	switch m.Role {
	case "assistant":
		said.Model = r.model
		for _, c := range m.Calls {
			said.Blocks = append(said.Blocks, r.call(entry.Line, c.ID, c.Name, c.Arguments))
		}
	case "tool":
		said.Blocks = []eventlog.Block{eventlog.ToolResult{CallID: m.CallID, Content: blocks}}
	case "user":
		if m.Origin.Kind != "" && m.Origin.Kind != "user" {
			entry.Label(transcript.LabelInjected, "true")
		}
	case "system":
	default:
		r.session.Keep(entry, "role-"+m.Role)
		return nil
	}
	entry.Body = said
	if id := r.session.Append(entry); id != "" && m.Role == "user" && entry.Labels[transcript.LabelInjected] == "" {
		r.humans = append(r.humans, id)
	}
	return nil
}

func (r *reader) call(line int, id, name string, arguments jsontext.Value) eventlog.ToolCall {
	call := eventlog.ToolCall{CallID: id, Name: name, Arguments: r.out.Arguments(line, id, arguments)}
	r.edits.Call(id, editors.Files(name, []byte(call.Arguments)))
	return call
}

func (r *reader) event(entry transcript.Entry, e *event) error {
	m := &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: e.Step, Model: r.model}
	switch e.Type {
	case "content.part":
		blocks, err := parts(transcript.List(e.Part))
		if err != nil {
			return err
		}
		if m.Blocks = blocks; len(blocks) == 1 && blocks[0] == eventlog.Block(eventlog.Thinking{}) {
			r.session.Keep(entry, "empty-reasoning")
			return nil
		}
	case "tool.call":
		m.Blocks = []eventlog.Block{r.call(entry.Line, e.CallID, e.Name, e.Args)}
	case "tool.result":
		inner, err := content.ResultContent(e.Result.Output)
		if err != nil {
			return err
		}
		if e.Result.Note != "" {
			inner = append(inner, eventlog.Text{Text: string(e.Result.Note)})
		}
		if files := r.edits.Result(e.CallID); !e.Result.IsError {
			entry.Labels = transcript.WithFilesChanged(entry.Labels, files)
		}
		m = &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{
			eventlog.ToolResult{CallID: e.CallID, Content: inner, IsError: e.Result.IsError},
		}}
	case "step.end":
		u := e.Usage
		entry.Labels = transcript.Usage{Prompt: u.Other + u.Read + u.Written, CacheRead: u.Read, CacheWrite: u.Written, Output: u.Output}.Labels()
		r.session.Custom(entry, e.Type)
		return nil
	case "step.begin":
		r.out.Skip(e.Type)
		return nil
	default:
		r.session.Keep(entry, e.Type)
		return nil
	}
	entry.Body = m
	r.session.Append(entry)
	return nil
}

// compaction kept the newest messages of the human, as many as it says.
func (r *reader) compaction(entry transcript.Entry, rec *record) {
	kept := r.humans[max(0, len(r.humans)-int(min(rec.Kept, 1<<20))):]
	r.session.Boundary(entry, &eventlog.Compaction{
		Summary: cmp.Or(rec.Given, rec.Summary), PreTokens: rec.Before, PostTokens: rec.After,
		KeptEventIDs: append([]string(nil), kept...), NativeJSON: transcript.Compact(entry.Native),
	})
}

// parts reads the parts of a content, of which the model's thoughts have a form of their own.
func parts(raw jsontext.Value) ([]eventlog.Block, error) {
	var list []jsontext.Value
	if len(raw) == 0 || raw[0] != '[' {
		return content.ChatBlocks(raw)
	}
	if err := transcript.Decode(raw, &list); err != nil {
		return nil, err
	}
	var out []eventlog.Block
	for _, one := range list {
		var part struct {
			Type     string          `json:"type"`
			Think    string          `json:"think"`
			Sealed   transcript.Word `json:"encrypted"`
			ImageURL transcript.Maybe[struct {
				URL transcript.Word `json:"url"`
			}] `json:"imageUrl"`
		}
		if err := transcript.Decode(one, &part); err != nil {
			return nil, err
		}
		if part.Type == "think" {
			out = append(out, eventlog.Thinking{Text: part.Think, EncryptedContent: string(part.Sealed)})
			continue
		}
		if image, ok := content.DataURL(string(part.ImageURL.Value.URL)); ok && part.Type == "image_url" {
			out = append(out, image)
			continue
		}
		blocks, err := content.ChatBlocks(transcript.List(one))
		if err != nil {
			return nil, err
		}
		out = append(out, blocks...)
	}
	return out, nil
}
