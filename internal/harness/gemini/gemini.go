// Package gemini reads the chat files of Gemini CLI: one JSON object with a list of messages, or JSON Lines in which
// later lines change earlier ones. Results are inside their calls. It also reads the stream of events that the CLI
// prints. docs/harness/gemini.md describes the formats and the mapping, and why there is no writer.
package gemini

import (
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Name of the harness.
const Name = "gemini"

// format is the value of LabelHarness in the harness's own sessions.
const format = "gemini-cli"

// Harness is Gemini CLI.
var Harness = transcript.Harness{Name: Name, Aliases: []string{format}, Detect: detect, Instead: instead, Read: read, NotKept: notKept}

// detect recognises a chat file by its first members, and a stream by the event that begins it.
func detect(p transcript.Probe) bool {
	return begins(p) || p.Has("sessionId", "projectHash") || p.Is("messages[].type", "gemini") ||
		(p.Is("type", "gemini") && p.Has("id", "timestamp", "content"))
}

// instead recognises the history of prompts that the harness keeps for its user.
func instead(p transcript.Probe) string {
	if p.Has("[].sessionId", "[].messageId") {
		return "this is what a user typed into Gemini CLI, not what its model saw: import chats/ of the same folder"
	}
	return ""
}

type message struct {
	ID        string         `json:"id"`
	Timestamp string         `json:"timestamp"`
	Type      string         `json:"type"`
	Content   jsontext.Value `json:"content"`
	Model     string         `json:"model"`
	Thoughts  []thought      `json:"thoughts"`
	ToolCalls []toolCall     `json:"toolCalls"`
	Tokens    tokens         `json:"tokens"`
}

type thought struct {
	Subject     string `json:"subject"`
	Description string `json:"description"`
}

type tokens struct {
	Input    transcript.Count `json:"input"`
	Output   transcript.Count `json:"output"`
	Cached   transcript.Count `json:"cached"`
	Thoughts transcript.Count `json:"thoughts"`
}

func (t tokens) labels() map[string]string {
	return transcript.Usage{Prompt: t.Input, CacheRead: t.Cached, Output: t.Output + t.Thoughts}.Labels()
}

type reader struct {
	out     *transcript.Builder
	session *transcript.SessionBuilder
	count   int
	// events are the ids of the events that a message became, by the message's id.
	events map[string][]string
	calls  calls
}

// read reads a whole chat file.
func read(in io.Reader) (transcript.Transcript, error) {
	out := transcript.NewBuilder(Name, in)
	r := &reader{out: out, session: out.Session(""), events: map[string][]string{}, calls: calls{open: map[string]toolCall{}, answered: map[string]bool{}, beside: map[eventlog.Block]bool{}}}
	r.session.Label(transcript.LabelHarness, format)
	buffered := transcript.Ahead(in, streamBytes)
	if stream, err := streamed(buffered); stream || err != nil {
		if err == nil {
			err = readStream(buffered, out, r.session)
		}
		return out.Finish(err)
	}
	h := &history{out: out, reader: r, at: map[string]int{}, first: map[string]int{}}
	err := h.read(buffered)
	for _, item := range h.items {
		if item.boundary {
			r.boundary(item)
		} else if item.raw != nil {
			r.message(item.raw, item.line)
		}
	}
	return out.Finish(err)
}

// boundary appends a compaction where the harness replaced messages. It has no summary: the file does not say
// which of the new messages is one.
func (r *reader) boundary(i item) {
	body := &eventlog.Compaction{NativeJSON: string(i.raw)}
	for _, id := range i.kept {
		body.KeptEventIDs = append(body.KeptEventIDs, r.events[id]...)
	}
	r.session.Append(transcript.Entry{
		Line: i.line, ID: transcript.PositionID(transcript.Record{Line: i.line}) + "/checkpoint", Body: body,
	})
}

func (r *reader) field(name string, value jsontext.Value) {
	text, isText := transcript.Text(value)
	switch {
	case name == "sessionId" && isText:
		r.session.Label(transcript.LabelSessionID, text)
	case name == "kind" && isText:
		r.session.Label("gemini.kind", text)
	case name == "directories":
		var list []string
		if transcript.Decode(value, &list) == nil && len(list) > 0 {
			r.session.Label(transcript.LabelWorkingDirectory, list[0])
		}
	default:
		r.out.Skip("member " + name)
	}
}

func (r *reader) message(raw jsontext.Value, line int) {
	r.count++
	entry := transcript.Entry{Line: line, Native: raw, ID: "msg-" + strconv.Itoa(r.count)}
	var m message
	if err := transcript.Decode(raw, &m); err != nil {
		r.session.Unreadable(entry, err)
		return
	}
	if m.ID != "" && m.ID != "REDACTED" {
		entry.ID = m.ID
	}
	entry.Time = transcript.ParseTime(m.Timestamp)
	blocks, err := content.GoogleBlocks(m.Content)
	if err != nil {
		r.session.Unreadable(entry, err)
		return
	}
	n := r.session.Len()
	defer func() {
		for _, e := range r.session.Since(n) {
			r.events[m.ID] = append(r.events[m.ID], e.ID)
		}
	}()
	switch m.Type {
	case "user":
		r.user(entry, blocks)
	case "gemini":
		r.reply(entry, &m, blocks)
	default: // info, warning and error are only displayed, unless they hold media
		if !slices.ContainsFunc(blocks, isMedia) {
			r.session.Keep(entry, m.Type)
			return
		}
		entry.Labels = map[string]string{transcript.LabelInjected: "true"}
		entry.Body = &eventlog.Message{Role: eventlog.RoleUser, Blocks: blocks}
		r.session.Append(entry)
	}
}

func isMedia(b eventlog.Block) bool { _, ok := b.(eventlog.Media); return ok }

// tags are the elements that the harness writes in user messages, in parts of their own.
var tags = transcript.Tags("session_context", "hook_context", snapshot, "system-reminder")

// snapshot is the element with the summary of a compression.
const snapshot = "state_snapshot"

// goesOn are what the harness writes to the model if that stopped without a reason.
var goesOn = []string{"System: Please continue.", "Please continue."}

// injectedLabels returns the labels of a user message of which the harness wrote all; nil for any other.
func injectedLabels(blocks []eventlog.Block) map[string]string {
	labels := map[string]string{}
	for _, b := range blocks {
		t, _ := b.(eventlog.Text) // empty for other blocks
		names, ok := transcript.Elements(t.Text, tags, tags)
		if !ok && !slices.Contains(goesOn, t.Text) {
			return nil
		}
		labels[transcript.LabelInjected] = "true"
		if slices.Contains(names, snapshot) {
			labels[transcript.LabelStanding] = "summary"
		}
	}
	return labels
}

// notKept lists what the reader omits.
var notKept = []transcript.NotKept{
	{Entry: "gemini", Field: "toolCalls[].resultDisplay", Reason: "what a tool shows the user: whole files before and after, and the output once more"},
	{Entry: "gemini", Field: "toolCalls[].description", Reason: "a text for the user's eyes"},
	{Entry: "gemini", Field: "toolCalls[].displayName", Reason: "a text for the user's eyes"},
	{Entry: "gemini", Field: "toolCalls[].renderOutputAsMarkdown", Reason: "how the user is shown the output"},
	{Entry: "gemini", Field: "thoughts[].timestamp", Reason: "an event has one time"},
	{Entry: "gemini", Field: "tokens.tool", Reason: "tokens of tools' prompts, which no label has"},
	{Entry: "*", Field: "displayContent", Reason: "what the user is shown in place of the content"},
	{Entry: "session", Field: "projectHash", Reason: "made from the directory"},
	{Entry: "session", Field: "startTime", Reason: "the first event has it"},
	{Entry: "session", Field: "lastUpdated", Reason: "the last event has it"},
	{Entry: "session", Field: "summary", Reason: "a title for the list of sessions"},
	{Entry: "session", Field: "memoryScratchpad", Reason: "notes for extracting memories"},
}
