package chat

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// container is an object that holds a list of messages; its other members describe the conversation.
type container struct {
	in       string // the member that holds the messages
	messages []element
	// each reads an object with messages that a nested member lists; nests is set if there is such a member.
	each   func(jsontext.Value, int)
	nests  bool
	fields []string
	system element
	google bool // the system prompt is in Google's form
	reply  element
	last   element // step of the trajectory
	tools  element
	model  string
	format string // trajectory_format
	id     string
	tau2   bool
	tree   element // of ChatGPT
	node   string  // the newest message of the tree that the user sees
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
	if c.lists(key, doc.Kind()) {
		ok, err := doc.List(func(raw jsontext.Value, line int) {
			c.messages = append(c.messages, element{raw, line})
		})
		if ok {
			c.in = key
		}
		return err
	}
	if slices.Contains(nested, key) && doc.Kind() == '[' {
		c.nests = true
		_, err = doc.List(c.each)
		return err
	}
	if key == trajectory && doc.Kind() == '[' {
		c.fields = append(c.fields, key)
		_, err = doc.List(func(raw jsontext.Value, line int) { c.last = element{raw, line} })
		return err
	}
	raw, line, err := doc.Value()
	if err != nil {
		return err
	}
	if slices.Contains(states, key) && c.in == "" {
		var state struct {
			Messages transcript.Maybe[[]jsontext.Value] `json:"messages"`
		}
		if transcript.Decode(raw, &state) == nil && len(state.Messages.Value) > 0 {
			c.in = key
			for _, m := range state.Messages.Value {
				c.messages = append(c.messages, element{m, line})
			}
			return nil
		}
	}
	if key == inMapping && raw[0] == '{' {
		c.tree = element{raw, line}
		return nil
	}
	c.field(key, element{raw, line})
	return nil
}

// lists reports whether a member, by its name and the kind of its value, holds messages of the list.
func (c *container) lists(key string, kind byte) bool {
	if key == inMessages && c.in == inInput { // Inspect writes its task first, and the messages contain it
		c.in, c.messages, c.fields = "", nil, append(c.fields, inInput)
	}
	switch key {
	case inMessages, inTraj, inHistory, inGoose:
		return c.in == "" || c.in == key
	case inContents, inInput, inShared:
		return c.in == "" && kind == '['
	case inOutput:
		return c.in == inInput && kind == '['
	case inClient:
		c.messages = nil
		return kind == '['
	}
	return false
}

// ids are the members with the conversation's id.
var ids = []string{"id", "instance_id", "task_id", "session_id", "sessionId", "conversation_id"}

func (c *container) field(key string, value element) {
	var text string
	isText := transcript.Decode(value.raw, &text) == nil
	switch {
	case key == "system" || isText && (key == "instructions" || key == "system_prompt" || key == "systemPrompt"):
		c.system = value
	case key == "systemInstruction" || key == "system_instruction":
		c.system, c.google = value, true
	case key == "response" && replyIn(value.raw) != nil:
		c.reply = element{replyIn(value.raw), value.line}
	case key == "tools" || key == "functions":
		c.tools = value
	case key == "model" && isText:
		c.model = text
	case key == "trajectory_format" && isText:
		c.format = text
	case key == "replay_config" && isText:
		c.model = cmp.Or(c.model, configured(text))
		c.fields = append(c.fields, key)
	case key == "current_node" && isText:
		c.node = text
	case slices.Contains(ids, key) && isText && c.id == "":
		c.id = text
	default:
		c.tau2 = c.tau2 || key == "termination_reason"
		c.fields = append(c.fields, key)
	}
}

// configured is the model in the configuration of SWE-agent, a JSON text; "" if there is none.
func configured(config string) string {
	var c struct {
		Agent transcript.Maybe[struct {
			Model transcript.Maybe[struct {
				Name transcript.Word `json:"name"`
			}] `json:"model"`
		}] `json:"agent"`
	}
	if transcript.Decode([]byte(config), &c) != nil {
		return ""
	}
	return string(c.Agent.Value.Model.Value.Name)
}

func (c *container) dialect() string {
	switch {
	case c.in == inTraj:
		return tauBench
	case c.in == inHistory && !inParts(c.messages) && !wrapped(c.messages):
		return sweAgent
	case strings.HasPrefix(c.format, miniSWEAgent):
		return miniSWEAgent
	case c.tau2:
		return tau2Bench
	}
	return ""
}

// emit appends the messages to a conversation, the system prompt first.
func (c *container) emit(to *conversation, out *transcript.Builder) {
	to.dialect = c.dialect()
	to.model = c.model
	if to.dialect != "" {
		to.session.Label(transcript.LabelHarness, to.dialect)
	}
	to.session.Label(transcript.LabelHarness, Name)
	to.session.Label(transcript.LabelSessionID, c.id)
	c.skip(out)
	if len(c.tools.raw) > 0 {
		to.session.Custom(transcript.Entry{Line: c.tools.line, ID: "tools", Native: c.tools.raw}, "tools")
	}
	if len(c.system.raw) > 0 && string(c.system.raw) != "null" && !c.repeats() {
		read := content.ChatBlocks
		if c.google {
			read = googleSystem
		}
		blocks, err := read(c.system.raw)
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
	if len(c.reply.raw) > 0 {
		to.add(c.reply.raw, c.reply.line)
	}
	if observed := c.observed(); to.pending && observed != nil {
		to.add(observed, c.last.line)
	}
}

// repeats reports whether the first message is the system prompt that a member has too.
func (c *container) repeats() bool {
	var first message
	if len(c.messages) == 0 || transcript.Decode(c.messages[0].raw, &first) != nil {
		return false
	}
	text, isText := transcript.Text(c.system.raw)
	said, _ := transcript.Text(first.Content)
	return isText && first.Role == "system" && said == text
}

// skip counts the members that are not read, for the warning at the end.
func (c *container) skip(out *transcript.Builder) {
	for _, name := range c.fields {
		out.Skip("member " + name)
	}
}

// observed is the result of SWE-agent's last action as a message, because the history ends with the action
// itself. It is nil if the last step of the trajectory has another action.
func (c *container) observed() jsontext.Value {
	var said message
	var step struct {
		Action      transcript.Word `json:"action"`
		Observation jsontext.Value  `json:"observation"`
	}
	if len(c.last.raw) == 0 || transcript.Decode(c.messages[len(c.messages)-1].raw, &said) != nil ||
		transcript.Decode(c.last.raw, &step) != nil || step.Action != said.Action || len(step.Observation) == 0 {
		return nil
	}
	return transcript.Object("role", "user", "content", step.Observation)
}

// replyIn is the message in a provider's response, which follows the messages of the request; nil if there is
// none.
func replyIn(response jsontext.Value) jsontext.Value {
	var r struct {
		Role    string         `json:"role"`
		Object  string         `json:"object"`
		Model   jsontext.Value `json:"model"`
		Usage   jsontext.Value `json:"usage"`
		Choices []struct {
			Message jsontext.Value `json:"message"`
		} `json:"choices"`
	}
	switch {
	case transcript.Decode(response, &r) != nil:
	case r.Role != "" || r.Object == "response":
		return response
	case len(r.Choices) > 0:
		return transcript.With(r.Choices[0].Message, "model", r.Model, "usage", r.Usage)
	}
	return nil
}
