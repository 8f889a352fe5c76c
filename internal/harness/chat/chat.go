// Package chat reads lists of chat messages: plain ones in OpenAI's or
// Anthropic's form, and those that tau-bench, tau2-bench, mini-swe-agent and
// SWE-agent write. docs/harness/chat.md describes the formats and the mapping.
package chat

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Name of the harness.
const Name = "chat"

// The lists of messages by the member of the object that holds them.
const (
	inMessages = "messages"
	inTraj     = "traj"    // tau-bench
	inHistory  = "history" // SWE-agent
)

// trajectory is the member in which SWE-agent repeats its history, a step with the whole prompt
// in each element: too much for one value.
const trajectory = "trajectory"

// Harness is all that writes lists of chat messages.
var Harness = transcript.Harness{
	Name: Name, Aliases: []string{"openai", "anthropic", "tau-bench", "tau2-bench", "mini-swe-agent", "swe-agent"}, Detect: detect, Instead: shownByCline, Read: read,
}

// detect recognises lists of messages by the role of their messages.
func detect(p transcript.Probe) bool {
	return p.Has("[].role", "[].content") || p.Has("[].role", "[].tool_calls") ||
		oneOf(p.Records) ||
		p.Has("messages[].role") || p.Has("traj[].role") || p.Has("history[].role") ||
		p.Has("[].messages[].role") || p.Has("[].traj[].role") || p.Has("[].history[].role") ||
		p.Has(trajectory+"[].action", trajectory+"[].observation", trajectory+"[].response") || // the history comes long after it
		p.Is("trajectory_format", "mini-swe-agent-1", "mini-swe-agent-1.1")
}

// roles are those of messages.
var roles = []string{"system", "developer", "user", "assistant", "model", "tool", "function"}

// oneOf reports whether a message is among the records of a file of lines. Other programs' events
// have roles as well.
func oneOf(records []map[string]string) bool {
	for _, r := range records {
		_, content := r["content"]
		_, calls := r["tool_calls"]
		if (content || calls) && (slices.Contains(roles, r["role"]) || strings.HasPrefix(r["role"], subagentRole)) {
			return true
		}
	}
	return false
}

type reader struct {
	out *transcript.Builder
	// loose is the session of messages that are in the file without a container.
	loose    *conversation
	sessions int
}

// read reads a file of messages: a list of them, one a line, or inside an object
// or several.
func read(in io.Reader) (transcript.Transcript, error) {
	r := &reader{out: transcript.NewBuilder(Name, in)}
	buffered := transcript.Ahead(in, 4096)
	start, err := buffered.Peek(4096)
	if err != nil && !errors.Is(err, io.EOF) {
		return transcript.Transcript{}, fmt.Errorf("read transcript: %w", err)
	}
	if oneALine(start) {
		err = transcript.ReadLines(buffered, r.out.Warn, func(l transcript.Record) { r.element(l.JSON, l.Line) })
	} else {
		err = r.document(transcript.NewDocument(buffered, r.out.Warn))
	}
	return r.out.Finish(err)
}

// oneALine reports whether the file begins with a message rather than with a list
// or an object that holds messages.
func oneALine(start []byte) bool {
	p := transcript.NewProbe(start)
	if len(p.Records) == 0 {
		return false
	}
	_, ok := p.Records[0]["role"]
	return ok
}

// document reads values that may be large, one message at a time.
func (r *reader) document(doc *transcript.Document) error {
	return doc.Each(func(kind byte) (bool, error) {
		switch kind {
		case '[':
			return true, doc.Rest(r.element)
		case '{':
			return true, r.object(doc)
		}
		r.out.Warn(doc.Line(), "neither an object nor a list; not read")
		return true, nil
	})
}

// element is a message, or an object that holds messages.
func (r *reader) element(raw jsontext.Value, line int) {
	var kind struct {
		Role     jsontext.Value `json:"role"`
		Messages jsontext.Value `json:"messages"`
		Traj     jsontext.Value `json:"traj"`
		History  jsontext.Value `json:"history"`
	}
	if raw[0] == '{' {
		if err := transcript.Decode(raw, &kind); err != nil {
			r.out.Warn(line, "not a message and not read: %v", err)
			return
		}
	}
	if len(kind.Role) == 0 && len(kind.Messages)+len(kind.Traj)+len(kind.History) > 0 {
		inner := transcript.NewDocument(bytes.NewReader(raw), r.out.Warn).StartingAt(line)
		_, err := inner.Open()
		if err == nil {
			err = r.object(inner)
		}
		if err != nil {
			r.out.Warn(line, "object with messages could not be read: %v", err)
		}
		return
	}
	if r.loose == nil {
		r.loose = r.conversation()
	}
	r.loose.add(raw, line)
}

// object reads an object that holds messages. Members beside them may come in any
// order, so the messages wait until all are known.
func (r *reader) object(doc *transcript.Document) error {
	c := &container{}
	var damage error
	for damage == nil && doc.More() {
		damage = c.member(doc)
	}
	if damage == nil {
		damage = doc.Close()
	}
	if len(c.messages) > 0 {
		c.emit(r.conversation(), r.out)
	} else if damage == nil {
		r.out.Warn(doc.Line(), "an object without messages was not read")
	}
	return damage
}

func (r *reader) conversation() *conversation {
	r.sessions++
	suffix := ""
	if r.sessions > 1 {
		suffix = strconv.Itoa(r.sessions)
	}
	return &conversation{out: r.out, session: r.out.Session(suffix), suffix: suffix}
}

// container is an object that holds a list of messages, and what its other members
// say about them.
type container struct {
	in       string // the member that holds the messages
	messages []element
	fields   []string
	system   element
	tools    element
	model    string
	format   string // trajectory_format
	id       string
	tau2     bool
}

type element struct {
	raw  jsontext.Value
	line int
}

// member reads one member of the object.
func (c *container) member(doc *transcript.Document) error {
	key, err := doc.Key()
	if err != nil {
		return err
	}
	if key == inMessages || key == inTraj || key == inHistory {
		ok, err := doc.List(func(raw jsontext.Value, line int) {
			c.messages = append(c.messages, element{raw, line})
		})
		if ok {
			c.in = key
		}
		return err
	}
	if key == trajectory && doc.Kind() == '[' {
		c.fields = append(c.fields, key)
		_, err = doc.List(func(jsontext.Value, int) {})
		return err
	}
	raw, line, err := doc.Value()
	if err != nil {
		return err
	}
	c.field(key, element{raw, line})
	return nil
}

func (c *container) field(key string, value element) {
	var text string
	isText := transcript.Decode(value.raw, &text) == nil
	switch {
	case key == "system":
		c.system = value
	case key == "tools" || key == "functions":
		c.tools = value
	case key == "model" && isText:
		c.model = text
	case key == "trajectory_format" && isText:
		c.format = text
	case (key == "id" || key == "instance_id" || key == "task_id") && isText && c.id == "":
		c.id = text
	default:
		c.tau2 = c.tau2 || key == "termination_reason"
		c.fields = append(c.fields, key)
	}
}

func (c *container) dialect() string {
	switch {
	case c.in == inTraj:
		return tauBench
	case c.in == inHistory:
		return sweAgent
	case strings.HasPrefix(c.format, miniSWEAgent):
		return miniSWEAgent
	case c.tau2:
		return tau2Bench
	}
	return ""
}

// emit gives the conversation its messages, the system prompt first.
func (c *container) emit(to *conversation, out *transcript.Builder) {
	to.dialect = c.dialect()
	to.model = c.model
	if to.dialect != "" {
		to.session.Label(transcript.LabelHarness, to.dialect)
	}
	to.session.Label(transcript.LabelHarness, Name)
	to.session.Label(transcript.LabelSessionID, c.id)
	for _, name := range c.fields {
		out.Skip("member " + name)
	}
	if len(c.tools.raw) > 0 {
		to.session.Custom(transcript.Entry{Line: c.tools.line, ID: "tools", Native: c.tools.raw}, "tools")
	}
	if len(c.system.raw) > 0 && string(c.system.raw) != "null" {
		blocks, err := content.ChatBlocks(c.system.raw)
		entry := transcript.Entry{Line: c.system.line, ID: "system", Native: c.system.raw}
		if err != nil {
			out.Warn(entry.Line, "unexpected shape of the system prompt, kept as a custom event: %v", err)
			to.session.Custom(entry, "unreadable")
		} else {
			entry.Body = &eventlog.Message{Role: eventlog.RoleSystem, Blocks: blocks}
			to.session.Append(entry)
		}
	}
	for _, m := range c.messages {
		to.add(m.raw, m.line)
	}
}
