// Package openhands reads the outputs of OpenHands' evaluations, which are JSON Lines with one run on each line, and
// lists of the events of one conversation. docs/harness/openhands.md describes the formats and the mapping.
package openhands

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Name of the harness.
const Name = "openhands"

// Harness is OpenHands.
var Harness = transcript.Harness{
	Name: Name, Detect: detect, Read: read, Folder: folder, Branches: &transcript.Branches{Left: left, Follows: follows},
}

// detect recognises a run by the events of its history, and a list by its events. A single event is not
// enough, since it is only a part of a conversation.
func detect(p transcript.Probe) bool {
	return p.Has("history[].source", "history[].action") || p.Has("instance_id", "instruction", "test_result") ||
		p.Has("instance_id", "test_result.git_patch") || p.Has("[].instance_id", "[].test_result.git_patch") || // the history comes after a patch of any size
		p.Has("[].source", "[].action", "[].args") || p.Has("[].source", "[].kind", "[].timestamp") ||
		len(p.Records) > 1 && (p.Has("source", "kind", "timestamp", "id") || p.Has("source", "action", "args", "timestamp"))
}

type reader struct {
	out *transcript.Builder
	// conversations counts the conversations: the runs, and the one of events without a run.
	conversations int
	// loose is the conversation of events that are not inside a run.
	loose *conversation
	count int // of the events in loose
}

// conversation is a run, or the events without one.
type conversation struct {
	*reader
	session *transcript.SessionBuilder
	reply   string            // the id of the newest reply
	calls   map[string]string // ids of calls made for actions of agents that call no functions, by the action's id
	view    []viewed          // the events of the SDK that the model still sees
	model   string            // that the SDK's agent asks
	tree    tree
}

// read reads a file of runs, each of which becomes a session, or the events of one conversation.
func read(in io.Reader) (transcript.Transcript, error) {
	r := &reader{out: transcript.NewBuilder(Name, in)}
	buffered := transcript.Ahead(in, beginning)
	start, err := buffered.Peek(beginning)
	if err != nil && !errors.Is(err, io.EOF) {
		return transcript.Transcript{}, fmt.Errorf("read transcript: %w", err)
	}
	if text := bytes.TrimLeft(start, " \t\r\n"); len(text) > 0 && (text[0] == '[' || spread(text)) {
		doc := transcript.NewDocument(buffered, r.out.Warn)
		return r.out.Finish(doc.Each(func(kind byte) (bool, error) {
			switch kind {
			case '[':
				return true, doc.Rest(r.element)
			case '{':
				return true, r.object(doc)
			}
			r.out.Warn(doc.Line(), "neither a run nor a list of events; not read")
			return false, nil
		}))
	}
	return r.out.Finish(transcript.ReadLines(buffered, r.out.Warn, r.record))
}

// beginning is how many bytes of a file are examined for its kind: a list, a run over several lines, or
// lines.
const beginning = 64 << 10

// element reads an element of a list: a run or an event.
func (r *reader) element(raw jsontext.Value, line int) {
	var one run
	if transcript.Decode(raw, &one) == nil && len(one.History) > 0 {
		r.run(&one, line)
		return
	}
	r.single(raw, line)
}

// single reads an event that is not inside a run.
func (r *reader) single(raw jsontext.Value, line int) {
	if r.loose == nil {
		r.loose = r.next()
	}
	r.count++
	r.loose.add(raw, line, r.count)
}

func (r *reader) conversation(suffix string) *conversation {
	c := &conversation{reader: r, session: r.out.Session(suffix), calls: map[string]string{}, tree: tree{at: map[string]string{}}}
	c.session.Label(transcript.LabelHarness, Name)
	return c
}

func (r *reader) record(line transcript.Record) {
	var one run
	if err := transcript.Decode(line.JSON, &one); err != nil {
		r.out.Warn(line.Line, "part of the run has an unexpected shape and was not read: %v", err)
	}
	if len(one.History) == 0 {
		if len(one.Source) > 0 && len(one.Timestamp) > 0 {
			r.single(line.JSON, line.Line)
			return
		}
		r.out.Warn(line.Line, "a run without a history was not read")
		return
	}
	r.run(&one, line.Line)
}

func (r *reader) run(one *run, line int) {
	c := r.next()
	c.session.Label(transcript.LabelSessionID, one.InstanceID)
	for i, raw := range one.History {
		c.add(raw, line, i+1)
	}
}

// add appends the nth event of a conversation.
func (c *conversation) add(raw jsontext.Value, line, n int) {
	entry := transcript.Entry{Line: line, ID: "event-" + strconv.Itoa(n), Native: raw}
	var kinded sdkEvent
	err := transcript.Decode(raw, &kinded)
	if err == nil && kinded.Kind != "" {
		entry.Time = transcript.ParseTime(kinded.Timestamp)
		if kinded.ID != "" {
			entry.ID = kinded.ID
		}
		n := c.session.Len()
		c.enter(&kinded)
		err = c.sdk(entry, &kinded)
		c.leave(&kinded, n)
	} else {
		var e event
		if err = transcript.Decode(raw, &e); err == nil {
			entry.Time = transcript.ParseTime(e.Timestamp)
			err = c.event(entry, &e)
		}
	}
	if err != nil {
		c.out.Warn(line, "event %d has an unexpected shape, kept as a custom event: %v", n, err)
		c.session.Custom(entry, "unreadable")
	}
}

func (c *conversation) event(entry transcript.Entry, e *event) error {
	switch {
	case e.Observation != "":
		c.observation(entry, e)
		return nil
	case e.ToolCall != nil && e.ToolCall.Reply != nil:
		return c.call(entry, e)
	}
	var args struct {
		Content string `json:"content"`
		Summary string `json:"summary"`
	}
	if len(e.Args) > 0 {
		if err := transcript.Decode(e.Args, &args); err != nil {
			return err
		}
	}
	switch e.Action {
	case "system":
		c.say(entry, eventlog.RoleSystem, args.Content)
	case "message":
		switch e.Source {
		case "user":
			c.say(entry, eventlog.RoleUser, args.Content)
		case "environment": // in the user's name
			entry.Labels = map[string]string{transcript.LabelInjected: "true"}
			c.say(entry, eventlog.RoleUser, args.Content)
		default:
			c.say(entry, eventlog.RoleAssistant, args.Content)
		}
	case "condensation":
		c.session.Boundary(entry, &eventlog.Compaction{Summary: args.Summary, NativeJSON: transcript.Compact(entry.Native)})
	case "recall", "change_agent_state", "null", "":
		c.session.Keep(entry, "action-"+e.Action)
	default:
		if e.Source != "agent" {
			c.session.Keep(entry, "action-"+e.Action)
			return nil
		}
		c.action(entry, e)
	}
	return nil
}

func (c *conversation) say(entry transcript.Entry, role eventlog.Role, text string) {
	entry.Body = &eventlog.Message{Role: role, Blocks: []eventlog.Block{eventlog.Text{Text: text}}}
	c.session.Append(entry)
}

// call appends an action that is one of the model's calls. The text of the reply goes before its first call.
func (c *conversation) call(entry transcript.Entry, e *event) error {
	r := e.ToolCall.Reply
	m := &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: r.ID, Model: r.Model}
	call := eventlog.ToolCall{CallID: e.ToolCall.ToolCallID, Name: e.ToolCall.FunctionName, Arguments: transcript.Compact(e.Args)}
	if len(r.Choices) > 0 {
		said := r.Choices[0].Message
		if r.ID == "" || r.ID != c.reply {
			if said.Reasoning != "" {
				m.Blocks = append(m.Blocks, eventlog.Thinking{Text: said.Reasoning})
			}
			text, err := content.ChatBlocks(said.Content)
			if err != nil {
				return err
			}
			m.Blocks = append(m.Blocks, text...)
			entry.Labels = r.labels()
		}
		for _, made := range said.ToolCalls {
			if made.ID == call.CallID {
				call.Name = made.Function.Name
				call.Arguments = c.out.Arguments(entry.Line, made.ID, made.Function.Arguments)
			}
		}
	}
	c.reply = r.ID
	m.Blocks = append(m.Blocks, call)
	entry.Body = m
	c.session.Append(entry)
	return nil
}

// action appends an action of an agent that calls no functions, as if the action were a call.
func (c *conversation) action(entry transcript.Entry, e *event) {
	id := c.session.ReserveCallID("action-" + string(e.ID))
	c.calls[string(e.ID)] = id
	entry.Body = &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{
		eventlog.ToolCall{CallID: id, Name: e.Action, Arguments: transcript.Compact(e.Args)},
	}}
	c.session.Append(entry)
}

func (c *conversation) observation(entry transcript.Entry, e *event) {
	id := c.calls[string(e.Cause)]
	if e.ToolCall != nil {
		id = e.ToolCall.ToolCallID
	}
	switch {
	case id != "":
		result := eventlog.ToolResult{CallID: id, IsError: e.failed()}
		if e.Content != "" {
			result.Content = []eventlog.Block{eventlog.Text{Text: e.Content}}
		}
		if e.Extras != nil {
			result.Content = e.Extras.Metadata.Value.around(result.Content)
		}
		entry.Labels = transcript.WithFilesChanged(entry.Labels, e.filesChanged())
		entry.Body = &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{result}}
		c.session.Append(entry)
	case e.Observation == "error":
		// An error that answers no call is shown to the model as a user message.
		entry.Labels = map[string]string{transcript.LabelInjected: "true"}
		c.say(entry, eventlog.RoleUser, e.Content)
	default:
		c.session.Keep(entry, "observation-"+e.Observation)
	}
}

// run is one line of an evaluation's output.
type run struct {
	InstanceID string           `json:"instance_id"`
	History    []jsontext.Value `json:"history"`

	// Members of an event, which a run does not have.
	Source    jsontext.Value `json:"source"`
	Timestamp jsontext.Value `json:"timestamp"`
}

// event is an action or an observation of a run.
type event struct {
	ID          jsontext.Value `json:"id"`
	Timestamp   string         `json:"timestamp"`
	Source      string         `json:"source"`
	Action      string         `json:"action"`
	Observation string         `json:"observation"`
	Content     string         `json:"content"`
	Cause       jsontext.Value `json:"cause"`
	Args        jsontext.Value `json:"args"`
	Extras      *struct {
		Metadata transcript.Maybe[shell] `json:"metadata"`
		Path     jsontext.Value          `json:"path"`
	} `json:"extras"`
	ToolCall *toolCallMetadata `json:"tool_call_metadata"`
}

// toolCallMetadata says which call of the model an event belongs to. Every such event repeats the whole
// reply.
type toolCallMetadata struct {
	FunctionName string `json:"function_name"`
	ToolCallID   string `json:"tool_call_id"`
	Reply        *reply `json:"model_response"`
}

type reply struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Choices []struct {
		Message struct {
			Content   jsontext.Value `json:"content"`
			Reasoning string         `json:"reasoning_content"`
			ToolCalls []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string         `json:"name"`
					Arguments jsontext.Value `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"message"`
	} `json:"choices"`
	Usage struct {
		Prompt     transcript.Count `json:"prompt_tokens"`
		Completion transcript.Count `json:"completion_tokens"`
		Details    *struct {
			Cached transcript.Count `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

func (r *reply) labels() map[string]string {
	u := transcript.Usage{Prompt: r.Usage.Prompt, Output: r.Usage.Completion}
	if r.Usage.Details != nil {
		u.CacheRead = r.Usage.Details.Cached
	}
	return u.Labels()
}

// filesChanged returns the file that an observation says was changed, if any.
func (e *event) filesChanged() []string {
	if e.Observation != "edit" && e.Observation != "write" || e.failed() || e.Extras == nil {
		return nil
	}
	path, _ := transcript.Text(e.Extras.Path)
	return []string{path}
}

// failed reports whether an observation says that its action failed.
func (e *event) failed() bool {
	if e.Observation == "error" {
		return true
	}
	if e.Observation == "edit" && len(e.Content) >= 6 && e.Content[:6] == "ERROR:" {
		return true
	}
	return e.Extras != nil && e.Extras.Metadata.Value.failed()
}
