// Package qwen reads the chats of Qwen Code: JSON Lines, in which messages have Google's form.
// docs/harness/qwen.md describes the format and the mapping.
package qwen

import (
	"crypto/sha256"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Name of the harness.
const Name = "qwen"

// format is the value of LabelHarness in the harness's own sessions.
const format = "qwen-code"

// labelAgent is the harness's id of the subagent whose session it is.
const labelAgent = Name + ".agent"

// Harness is Qwen Code.
var Harness = transcript.Harness{
	Name: Name, Aliases: []string{format}, Detect: detect, Read: read,
	Branches: &transcript.Branches{Left: left, Follows: follows}, LabelUnseen: labelUnseen,
}

// editors are the harness's own tools that change files.
var editors = transcript.Editors{"edit": {"file_path"}, "replace": {"file_path"}, "write_file": {"file_path"}, "notebook_edit": {"notebook_path"}}

// detect recognises a chat by a record with a message in Google's form, or by a system record, which may come
// before the first message.
func detect(p transcript.Probe) bool {
	return p.Has("uuid", "sessionId", "message.role", "message.parts") || p.Has("uuid", "sessionId", "subtype", "systemPayload")
}

type record struct {
	UUID       string          `json:"uuid"`
	ParentUUID transcript.Word `json:"parentUuid"`
	SessionID  transcript.Word `json:"sessionId"`
	Timestamp  transcript.Word `json:"timestamp"`
	Type       string          `json:"type"`
	Subtype    transcript.Word `json:"subtype"`
	CWD        transcript.Word `json:"cwd"`
	Version    transcript.Word `json:"version"`
	GitBranch  transcript.Word `json:"gitBranch"`
	Model      transcript.Word `json:"model"`
	AgentID    transcript.Word `json:"agentId"`
	// Provenance and External say who wrote a user message, in newer versions.
	Provenance  transcript.Word `json:"provenance"`
	External    transcript.Word `json:"externalInputKind"`
	IsSidechain bool            `json:"isSidechain"`
	Message     *struct {
		Role  string         `json:"role"`
		Parts jsontext.Value `json:"parts"`
	} `json:"message"`
	Usage  transcript.Maybe[usage] `json:"usageMetadata"`
	Result transcript.Maybe[struct {
		Status string `json:"status"`
	}] `json:"toolCallResult"`
	Payload jsontext.Value `json:"systemPayload"`
}

type usage struct {
	Prompt     transcript.Count `json:"promptTokenCount"`
	Candidates transcript.Count `json:"candidatesTokenCount"`
	Total      transcript.Count `json:"totalTokenCount"`
	Cached     transcript.Count `json:"cachedContentTokenCount"`
}

// labels counts the tokens of the total beyond the prompt as output: only with some models do the candidates
// include the thoughts.
func (u usage) labels() map[string]string {
	return transcript.Usage{Prompt: u.Prompt, CacheRead: u.Cached, Output: max(u.Candidates, u.Total-min(u.Total, u.Prompt))}.Labels()
}

type reader struct {
	out  *transcript.Builder
	main *chat
	// agents are the chats of subagents, by their ids.
	agents map[string]*chat
}

// chat is one conversation of a file.
type chat struct {
	session *transcript.SessionBuilder
	edits   transcript.OpenEdits
	// newest is the id of the last message; at is the id of the last message at the time of each record, by
	// the record's uuid.
	newest string
	at     map[string]string
	// events are the ids of messages by the digest of their parts, to find the messages that a compression
	// kept.
	events map[[sha256.Size]byte]string
}

func read(in io.Reader) (transcript.Transcript, error) {
	out := transcript.NewBuilder(Name, in)
	r := &reader{out: out, main: newChat(out, ""), agents: map[string]*chat{}}
	return out.Finish(transcript.ReadLines(in, out.Warn, r.record))
}

func newChat(out *transcript.Builder, suffix string) *chat {
	c := &chat{session: out.Session(suffix), edits: transcript.OpenEdits{}, at: map[string]string{}, events: map[[sha256.Size]byte]string{}}
	c.session.Label(transcript.LabelHarness, format)
	return c
}

// of returns the chat that a record belongs to.
func (r *reader) of(rec *record) *chat {
	id := string(rec.AgentID)
	if !rec.IsSidechain && id == "" {
		return r.main
	}
	c := r.agents[id]
	if c == nil {
		c = newChat(r.out, fmt.Sprintf("sidechain-%d", len(r.agents)+1))
		c.session.Label(labelAgent, id)
		r.agents[id] = c
	}
	return c
}

func (r *reader) record(l transcript.Record) {
	entry := transcript.Entry{Line: l.Line, ID: transcript.PositionID(l), Native: l.JSON}
	var rec record
	if err := transcript.Decode(l.JSON, &rec); err != nil {
		r.main.session.Unreadable(entry, err)
		return
	}
	if rec.UUID != "" {
		entry.ID = rec.UUID
	}
	entry.Time = transcript.ParseTime(string(rec.Timestamp))
	c := r.of(&rec)
	c.session.Label(transcript.LabelSessionID, string(rec.SessionID))
	c.session.Label(transcript.LabelVersion, string(rec.Version))
	c.session.Label(transcript.LabelWorkingDirectory, string(rec.CWD))
	c.session.Label(transcript.LabelGitBranch, string(rec.GitBranch))
	switch {
	case rec.Type == "system":
		r.system(c, entry, &rec)
	case rec.Message == nil || rec.Type != "user" && rec.Type != "assistant" && rec.Type != "tool_result":
		c.session.Keep(entry, rec.Type)
	default:
		c.message(entry, &rec)
	}
	c.at[rec.UUID] = c.newest
}

// injected are the subtypes and provenances of user messages that the harness writes.
var injected = []transcript.Word{"notification", "cron", "goal_runtime", "goal_control", "system"}

// realtime is the subtype of what was said aloud to another model: the harness does not send it on.
const realtime = "realtime_message"

// labelUnseen is "true" on such messages.
const labelUnseen = Name + ".realtime"

// fromHarness reports whether the harness wrote a user message.
func (r *record) fromHarness() bool {
	return slices.Contains(injected, r.Subtype) || slices.Contains(injected, r.Provenance) || r.External == "notification"
}

func (c *chat) message(entry transcript.Entry, rec *record) {
	blocks, err := content.GoogleBlocks(rec.Message.Parts)
	if err != nil {
		c.session.Unreadable(entry, err)
		return
	}
	said := &eventlog.Message{Role: eventlog.RoleUser, Blocks: blocks}
	switch {
	case rec.Type == "assistant":
		said.Role, said.Model = eventlog.RoleAssistant, string(rec.Model)
		entry.Labels = rec.Usage.Value.labels()
		c.calls(blocks)
	case c.results(blocks, rec.Result.Value.Status, &entry):
		said.Role = eventlog.RoleTool
	case rec.fromHarness():
		entry.Label(transcript.LabelInjected, "true")
	}
	if rec.Subtype == realtime {
		entry.Label(labelUnseen, "true")
	}
	entry.Body = said
	if id := c.session.Append(entry); id != "" {
		c.newest = id
		c.events[digest(rec.Message.Parts)] = id
	}
}

func (c *chat) calls(blocks []eventlog.Block) {
	for _, b := range blocks {
		if call, ok := b.(eventlog.ToolCall); ok {
			c.edits.Call(call.CallID, editors.Files(call.Name, []byte(call.Arguments)))
		}
	}
}

// results sets IsError of the results among the blocks, and reports whether there are only results.
func (c *chat) results(blocks []eventlog.Block, status string, entry *transcript.Entry) bool {
	alone := len(blocks) > 0
	var changed []string
	for i, b := range blocks {
		result, ok := b.(eventlog.ToolResult)
		if !ok {
			alone = false
			continue
		}
		files := c.edits.Result(result.CallID)
		result.IsError = result.IsError || status == "error" || status == "cancelled"
		if !result.IsError {
			changed = append(changed, files...)
		}
		blocks[i] = result
	}
	entry.Labels = transcript.WithFilesChanged(entry.Labels, changed)
	return alone
}

// system reads a system record. If it changes the chat, it becomes an event.
func (r *reader) system(c *chat, entry transcript.Entry, rec *record) {
	switch rec.Subtype {
	case "chat_compression":
		c.compression(entry, rec)
	case "rewind":
		c.newest = c.at[string(rec.ParentUUID)]
		entry.Label(labelKept, c.newest)
		c.session.Custom(entry, "rewind")
	case "agent_bootstrap": // has the history of the session that a subagent was forked from
		c.session.Custom(entry, "agent_bootstrap")
	default:
		r.out.Skip("system " + string(rec.Subtype))
	}
}
