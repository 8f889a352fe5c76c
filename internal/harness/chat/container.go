package chat

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

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
