// Package vscode reads chats of VS Code's Copilot: one JSON object with a list of requests.
// docs/harness/vscode.md describes the format and the mapping.
package vscode

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Name of the harness.
const Name = "vscode"

// format is the value of LabelHarness in the harness's own sessions.
const format = "vscode-chat"

// Harness is the chat of VS Code.
var Harness = transcript.Harness{Name: Name, Aliases: []string{format}, Detect: detect, Read: read}

// editors are VS Code's own tools that change the file they name.
var editors = transcript.Editors{
	"create_file": {"filePath"}, "insert_edit_into_file": {"filePath"}, "replace_string_in_file": {"filePath"},
	"edit_notebook_file": {"filePath"},
}

// detect recognises a chat by its requests, or by the log of its changes.
func detect(p transcript.Probe) bool {
	return changes(p) || p.Has("requests[].requestId", "requests[].message.text") || p.Has("requests[].requestId", "requests[].message.parts")
}

type request struct {
	ID       string           `json:"requestId"`
	Message  said             `json:"message"`
	Time     milliseconds     `json:"timestamp"`
	Model    transcript.Word  `json:"modelId"`
	Response []jsontext.Value `json:"response"`
	Result   struct {
		Metadata transcript.Maybe[metadata] `json:"metadata"`
	} `json:"result"`
}

// milliseconds is a time in milliseconds of the epoch; 0 if the file has something else in its place.
type milliseconds = transcript.Maybe[int64]

// metadata is what was sent to the model and what it returned.
type metadata struct {
	Context []said                              `json:"renderedGlobalContext"`
	User    []said                              `json:"renderedUserMessage"`
	Rounds  []round                             `json:"toolCallRounds"`
	Results map[string]transcript.Maybe[result] `json:"toolCallResults"`

	Summaries transcript.Maybe[[]summary] `json:"summaries"`
	Summary   transcript.Maybe[summary]   `json:"summary"` // in older versions
}

// said is what a user typed, or a part of a message as it was sent. Parts of other kinds have no text.
type said struct {
	Text string `json:"text"`
}

// round is a reply of the model, and the calls that it made.
type round struct {
	ID       string       `json:"id"`
	Text     string       `json:"response"`
	Time     milliseconds `json:"timestamp"`
	Thinking transcript.Maybe[struct {
		ID        transcript.Word `json:"id"`
		Text      jsontext.Value  `json:"text"` // one, or a list of them
		Encrypted transcript.Word `json:"encrypted"`
	}] `json:"thinking"`
	Calls   []call          `json:"toolCalls"`
	Summary transcript.Word `json:"summary"` // of the round and all before it
}

type call struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
}

type reader struct {
	out     *transcript.Builder
	session *transcript.SessionBuilder
	count   int
	past
}

// read reads a whole chat.
func read(in io.Reader) (transcript.Transcript, error) {
	out := transcript.NewBuilder(Name, in)
	r := &reader{out: out, session: out.Session(""), past: past{ends: map[string]int{}}}
	r.session.Label(transcript.LabelHarness, format)
	buffered := transcript.Ahead(in, beginning)
	begin, err := buffered.Peek(beginning)
	if err != nil && !errors.Is(err, io.EOF) {
		return transcript.Transcript{}, fmt.Errorf("read transcript: %w", err)
	}
	var chat io.Reader = buffered
	if changes(transcript.NewProbe(begin)) {
		if chat, err = replay(buffered, out.Warn); err != nil {
			return out.Finish(err)
		}
	}
	return out.Finish(transcript.ReadObject(chat, out.Warn, "requests", r.field, r.request))
}

// beginning is how many bytes of a file show whether it is a chat or a log of changes.
const beginning = 64 << 10

func (r *reader) field(name string, value jsontext.Value, _ int) {
	if text, ok := transcript.Text(value); ok && name == "sessionId" {
		r.session.Label(transcript.LabelSessionID, text)
		return
	}
	r.out.Skip("member " + name)
}

func (r *reader) request(raw jsontext.Value, line int) {
	r.count++
	entry := transcript.Entry{Line: line, Native: raw, ID: "request-" + strconv.Itoa(r.count)}
	var rec request
	if err := transcript.Decode(raw, &rec); err != nil {
		r.session.Unreadable(entry, err)
		return
	}
	entry.ID = cmp.Or(rec.ID, entry.ID)
	entry.Time = at(rec.Time)
	sent := rec.Result.Metadata.Value
	answered := r.late(entry, sent.Results)
	r.earlier(entry, &sent)
	before := len(r.messages)
	r.injected(entry, "/context", joined(sent.Context))
	for i := before; i < len(r.messages); i++ {
		r.contexts = append(r.contexts, i)
	}
	text := cmp.Or(joined(sent.User), rec.Message.Text)
	for _, element := range requestElements {
		if attached, asked, ok := transcript.Asked(text, element); ok && attached != "" {
			r.injected(entry, "/attached", attached)
			text = asked
		}
	}
	r.append(entry, "", &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: text}}})
	if len(sent.Rounds) == 0 {
		r.shown(entry, &rec)
		return
	}
	for i := range sent.Rounds {
		answered += r.round(entry, fmt.Sprintf("/round-%d", i+1), rec.model(), &sent.Rounds[i], sent.Results)
	}
	if extra := len(sent.Results) - answered; extra > 0 {
		r.out.Warn(line, "%d results answer no call of their request and were not read", extra)
	}
}

// requestElements are the elements around what the user typed, by the model that is asked.
var requestElements = []string{"userRequest", "user_query"}

// model is the model's name without the name of its vendor.
func (r *request) model() string { return strings.TrimPrefix(string(r.Model), "copilot/") }

// injected appends what VS Code adds to the prompts: the workspace before the first, and what is attached to each.
func (r *reader) injected(entry transcript.Entry, end, text string) {
	if text == "" {
		return
	}
	entry.Labels = map[string]string{transcript.LabelInjected: "true"}
	r.append(entry, end, &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: text}}})
}

// append appends a message under the entry's id with a suffix.
func (r *reader) append(entry transcript.Entry, end string, m *eventlog.Message) {
	entry.ID += end
	entry.Body = m
	if id := r.session.Append(entry); id != "" {
		r.messages = append(r.messages, id)
	}
}

// round appends a reply and the results of its calls, and returns the number of results.
func (r *reader) round(entry transcript.Entry, end, model string, reply *round, results map[string]transcript.Maybe[result]) (answered int) {
	if t := at(reply.Time); !t.IsZero() {
		entry.Time = t
	}
	m := &eventlog.Message{Role: eventlog.RoleAssistant, Model: model, GroupID: reply.ID}
	if t := reply.thinking(); t != (eventlog.Thinking{}) {
		m.Blocks = append(m.Blocks, t)
	}
	m.Blocks = append(m.Blocks, eventlog.Text{Text: reply.Text})
	for _, c := range reply.Calls {
		m.Blocks = append(m.Blocks, eventlog.ToolCall{CallID: c.ID, Name: c.Name, Arguments: r.out.Arguments(entry.Line, c.ID, c.Arguments)})
	}
	r.append(entry, end, m)
	for i, c := range reply.Calls {
		if r.answer(entry, fmt.Sprintf("%s/result-%d", end, i+1), c, results) {
			answered++
		} else {
			r.open = append(r.open, c)
		}
	}
	r.ends[reply.ID] = len(r.messages)
	r.compact(entry, end+"/summary", reply.ID)
	return answered
}

// answer appends the result of a call, if there is one.
func (r *reader) answer(entry transcript.Entry, end string, c call, results map[string]transcript.Maybe[result]) bool {
	given, ok := results[c.ID]
	if !ok {
		return false
	}
	said := eventlog.ToolResult{CallID: c.ID, Content: given.Value.blocks()}
	if said.IsError = failed(said.Content); !said.IsError {
		arguments, _ := transcript.RawArguments(c.Arguments)
		entry.Labels = transcript.WithFilesChanged(nil, changed(c.Name, []byte(arguments)))
	}
	r.append(entry, end, &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{said}})
	return true
}

func (r *round) thinking() eventlog.Thinking {
	said := r.Thinking.Value
	t := eventlog.Thinking{EncryptedContent: string(said.Encrypted)}
	if content.IsReasoningID(string(said.ID)) {
		t.Signature = string(said.ID)
	}
	var texts []string
	if one, ok := transcript.Text(said.Text); ok {
		t.Text = one
	} else if transcript.Decode(said.Text, &texts) == nil {
		t.Text = strings.Join(texts, "\n")
	}
	return t
}

// joined is the text of a message in the form in which it was sent.
func joined(parts []said) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

func at(ms milliseconds) time.Time {
	if ms.Value <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms.Value).UTC()
}
