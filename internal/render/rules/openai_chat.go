package rules

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// checkChat holds lines to the rules of the messages of Chat Completions.
func checkChat(r *report, lines [][]byte) {
	c := &chat{report: r, calls: newCalls()}
	for i, line := range lines {
		c.message(i, line)
	}
	c.calls.closed(r, len(lines)-1)
	r.openAISize(lines)
}

// chatCalls is how many calls a message may have.
const chatCalls = 128

type chat struct {
	*report
	calls *calls
}

func (c *chat) message(line int, raw []byte) {
	var head struct {
		Role string `json:"role"`
	}
	_ = json.Unmarshal(raw, &head) // what is no object has no role, and object says so
	if head.Role != "tool" {
		c.calls.closed(c.report, line)
	}
	switch head.Role {
	case "system", "developer":
		o := c.object(line, "message", raw, []string{"role", "content"}, []string{"name"})
		c.content(line, o["content"], "text")
	case "user":
		o := c.object(line, "message", raw, []string{"role", "content"}, []string{"name"})
		c.content(line, o["content"], "text", "image_url", "input_audio", "file")
	case "assistant":
		c.assistant(line, raw)
	case "tool":
		o := c.object(line, "message", raw, []string{"role", "content", "tool_call_id"}, nil)
		c.calls.answer(c.report, line, c.text(line, "tool_call_id", o["tool_call_id"]))
		if s := o["content"]; len(s) == 0 || s[0] != '"' { // a tool may give back nothing
			c.content(line, s, "text")
		}
	default:
		c.object(line, "message", raw, []string{"role"}, []string{"content"})
		c.add(line, "role", "%q is none of system, developer, user, assistant and tool", head.Role)
	}
}

// content holds a string or a list of parts of some types.
func (c *chat) content(line int, raw json.RawMessage, types ...string) {
	if len(raw) > 0 && raw[0] == '"' {
		c.filled(line, "content", raw)
		return
	}
	parts := c.list(line, "content", raw)
	if raw != nil && parts != nil && len(parts) == 0 {
		c.add(line, "empty", "content: no parts")
	}
	for i, part := range parts {
		where := fmt.Sprintf("content[%d]", i)
		kind := c.kind(line, where, part)
		c.choice(line, where+".type", quoted(kind), types...)
		switch kind {
		case "text":
			o := c.object(line, where, part, []string{"type", "text"}, nil)
			c.filled(line, where+".text", o["text"])
		case "refusal":
			o := c.object(line, where, part, []string{"type", "refusal"}, nil)
			c.filled(line, where+".refusal", o["refusal"])
		case "image_url":
			o := c.object(line, where, part, []string{"type", "image_url"}, nil)
			image := c.object(line, where+".image_url", o["image_url"], []string{"url"}, []string{"detail"})
			c.imageURL(line, where+".image_url.url", image["url"])
			c.choice(line, where+".image_url.detail", image["detail"], openAIDetail...)
		case "input_audio":
			o := c.object(line, where, part, []string{"type", "input_audio"}, nil)
			c.audio(line, where+".input_audio", o["input_audio"])
		case "file":
			c.file(line, where, part)
		}
	}
}

func (c *chat) file(line int, where string, part json.RawMessage) {
	o := c.object(line, where, part, []string{"type", "file"}, nil)
	file := c.object(line, where+".file", o["file"], nil, []string{"file_id", "filename", "file_data"})
	if id := file["file_id"]; id != nil {
		c.filled(line, where+".file.file_id", id)
		return
	}
	c.filled(line, where+".file.filename", file["filename"])
	if file["filename"] == nil {
		c.add(line, "media", "%s.file: data without a name", where)
	}
	c.dataURL(line, where+".file.file_data", c.text(line, where+".file.file_data", file["file_data"]), []string{"application/pdf"})
}

func (c *chat) assistant(line int, raw []byte) {
	required := []string{"role"}
	if c.returning {
		required = append(required, "reasoning_content")
	}
	o := c.object(line, "message", raw, required, []string{"content", "refusal", "tool_calls", "name", "reasoning_details", "thinking_blocks"})
	c.hosted(line, "reasoning_details", o["reasoning_details"], hostedDetail)
	c.hosted(line, "thinking_blocks", o["thinking_blocks"], hostedBlock)
	if c.returning && c.text(line, "reasoning_content", o["reasoning_content"]) == "" {
		c.add(line, "thinking", "reasoning_content: empty")
	}
	content, said := o["content"]
	said = said && string(content) != "null"
	if said {
		c.content(line, content, "text", "refusal")
	}
	if refusal, ok := o["refusal"]; ok {
		c.filled(line, "refusal", refusal)
		said = true
	}
	made, ok := o["tool_calls"]
	if !ok {
		if !said {
			c.add(line, "empty", "a message of the assistant with neither content nor calls")
		}
		return
	}
	list := c.list(line, "tool_calls", made)
	if len(list) == 0 {
		c.add(line, "empty", "tool_calls: no calls")
	}
	if len(list) > chatCalls {
		c.add(line, "size", "tool_calls: %d calls, more than %d", len(list), chatCalls)
	}
	for i, call := range list {
		c.call(line, fmt.Sprintf("tool_calls[%d]", i), call)
	}
}

func (c *chat) call(line int, where string, raw json.RawMessage) {
	o := c.object(line, where, raw, []string{"id", "type", "function"}, []string{"extra_content", "provider_specific_fields"})
	for _, name := range []string{"extra_content", "provider_specific_fields"} {
		if raw := o[name]; raw != nil {
			c.open(line, where+"."+name, raw)
		}
	}
	c.choice(line, where+".type", o["type"], "function")
	function := c.object(line, where+".function", o["function"], []string{"name", "arguments"}, nil)
	c.toolName(line, where+".function.name", function["name"])
	c.arguments(line, where+".function.arguments", function["arguments"])
	c.calls.call(c.report, line, c.text(line, where+".id", o["id"]), longestChatCallID)
}

// The types of what is in a host's lists.
var (
	hostedDetail = regexp.MustCompile(`^reasoning\.[a-z_]+$`)
	hostedBlock  = regexp.MustCompile(`^(redacted_)?thinking$`)
)

// hosted holds a list of sealed reasoning of a host of models, if there is one.
func (c *chat) hosted(line int, name string, raw json.RawMessage, types *regexp.Regexp) {
	if raw == nil {
		return
	}
	list := c.list(line, name, raw)
	if len(list) == 0 {
		c.add(line, "empty", "%s: nothing", name)
	}
	for i, e := range list {
		where := fmt.Sprintf("%s[%d]", name, i)
		if kind := c.kind(line, where, e); !types.MatchString(kind) {
			c.add(line, "value", "%s.type: %q", where, kind)
		}
		if c.returning {
			c.add(line, "thinking", "%s: a seal beside a text", where)
		}
	}
}

// quoted is a string as JSON.
func quoted(s string) json.RawMessage {
	out, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return out
}
