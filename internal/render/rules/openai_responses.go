package rules

import (
	"encoding/json"
	"fmt"
	"strings"
)

// checkResponses holds lines to the rules of the input items of Responses.
func checkResponses(r *report, lines [][]byte) {
	c := &responses{report: r, calls: newCalls(), ids: map[string]bool{}}
	for i, line := range lines {
		c.item(i, line)
	}
	end := len(lines) - 1
	c.calls.closed(r, end)
	c.follows(end, "")
	r.openAISize(lines)
}

type responses struct {
	*report
	calls *calls
	ids   map[string]bool
	// reasons is set after an item of reasoning, and said after any item of the model.
	reasons, said bool
}

var itemStates = []string{"in_progress", "completed", "incomplete"}

func (c *responses) item(line int, raw []byte) {
	kind := c.kind(line, "item", raw)
	role := ""
	if kind == "message" {
		var head struct {
			Role string `json:"role"`
		}
		_ = json.Unmarshal(raw, &head) // what is no string is no role, and message says so
		role = head.Role
	}
	c.follows(line, kind+" "+role)
	theirs := kind == "message" && role != "assistant" || kind == "function_call_output"
	if c.returning && !theirs && !c.said && kind != "reasoning" {
		c.add(line, "thinking", "no reasoning")
	}
	c.said = !theirs
	if kind == "message" && role != "assistant" {
		c.calls.closed(c.report, line)
	}
	switch kind {
	case "message":
		c.message(line, raw, role)
	case "reasoning":
		c.reasoning(line, raw)
	case "function_call":
		o := c.object(line, "item", raw, []string{"type", "call_id", "name", "arguments"}, []string{"id", "status", "namespace"})
		if o["namespace"] != nil {
			c.filled(line, "namespace", o["namespace"])
		}
		c.toolName(line, "name", o["name"])
		c.arguments(line, "arguments", o["arguments"])
		c.id(line, o["id"], "fc_")
		c.choice(line, "status", o["status"], itemStates...)
		c.calls.call(c.report, line, c.text(line, "call_id", o["call_id"]), longestResponsesCallID)
	case "function_call_output":
		o := c.object(line, "item", raw, []string{"type", "call_id", "output"}, []string{"id", "status"})
		c.calls.answer(c.report, line, c.text(line, "call_id", o["call_id"]))
		if out := o["output"]; len(out) == 0 || out[0] != '"' { // a tool may give back nothing
			c.content(line, "output", out)
		}
	default:
		c.provided(line, kind, raw)
	}
}

// follows checks that what comes after reasoning is what the model did next.
func (c *responses) follows(line int, next string) {
	if c.reasons {
		switch {
		case next == "message assistant", next == "reasoning ", next == "function_call ":
		case strings.HasSuffix(next, "_call "), next == "mcp_list_tools ", next == "compaction ":
		default:
			c.add(line, "reasoning", "an item of reasoning without the item it led to")
		}
	}
	c.reasons = next == "reasoning "
}

// id holds the id of an item: those of one kind begin alike, and no two are the same.
func (c *responses) id(line int, raw json.RawMessage, begins string) {
	if raw == nil {
		return
	}
	id := c.text(line, "id", raw)
	if !strings.HasPrefix(id, begins) || len(id) == len(begins) || len(id) > longestResponsesCallID+len(begins) {
		c.add(line, "id", "%q does not begin with %q, or is too long", id, begins)
	}
	if c.ids[id] {
		c.add(line, "id", "%q is the id of an earlier item", id)
	}
	c.ids[id] = true
}

func (c *responses) message(line int, raw []byte, role string) {
	switch role {
	case "system", "developer", "user":
		o := c.object(line, "item", raw, []string{"role", "content"}, []string{"type"})
		if content := o["content"]; len(content) > 0 && content[0] == '"' {
			c.filled(line, "content", content)
			return
		}
		c.content(line, "content", o["content"])
	case "assistant":
		c.answer(line, raw)
	default:
		c.add(line, "role", "%q is none of system, developer, user and assistant", role)
	}
}

// answer holds a message of the model: by its text alone, or the item as the provider
// gave it.
func (c *responses) answer(line int, raw []byte) {
	o, ok := c.open(line, "item", raw)
	if !ok {
		return
	}
	if content := o["content"]; len(content) > 0 && content[0] == '"' {
		c.object(line, "item", raw, []string{"role", "content"}, []string{"type", "phase"})
		c.filled(line, "content", content)
		c.phase(line, o["phase"])
		return
	}
	c.phase(line, o["phase"])
	c.object(line, "item", raw, []string{"type", "id", "role", "status", "content"}, []string{"phase"})
	c.id(line, o["id"], "msg_")
	c.choice(line, "status", o["status"], itemStates...)
	parts := c.list(line, "content", o["content"])
	if len(parts) == 0 {
		c.add(line, "empty", "content: no parts")
	}
	for i, part := range parts {
		where := fmt.Sprintf("content[%d]", i)
		switch kind := c.kind(line, where, part); kind {
		case "output_text":
			p := c.object(line, where, part, []string{"type", "text", "annotations"}, []string{"logprobs"})
			c.filled(line, where+".text", p["text"])
			for _, a := range c.list(line, where+".annotations", p["annotations"]) {
				c.choice(line, where+".annotations", quoted(c.kind(line, where, a)), "file_citation", "url_citation", "container_file_citation", "file_path")
			}
		case "refusal":
			p := c.object(line, where, part, []string{"type", "refusal"}, nil)
			c.filled(line, where+".refusal", p["refusal"])
		default:
			c.add(line, "value", "%s.type: the model says output_text and refusal, not %q", where, kind)
		}
	}
}

func (c *responses) phase(line int, raw json.RawMessage) {
	if string(raw) != "null" {
		c.choice(line, "phase", raw, "commentary", "final_answer")
	}
}

// content holds a list of what the model is shown.
func (c *responses) content(line int, name string, raw json.RawMessage) {
	parts := c.list(line, name, raw)
	if raw != nil && parts != nil && len(parts) == 0 {
		c.add(line, "empty", "%s: no parts", name)
	}
	for i, part := range parts {
		where := fmt.Sprintf("%s[%d]", name, i)
		switch kind := c.kind(line, where, part); kind {
		case "input_text":
			p := c.object(line, where, part, []string{"type", "text"}, nil)
			c.filled(line, where+".text", p["text"])
		case "input_image":
			p := c.object(line, where, part, []string{"type", "detail"}, []string{"image_url", "file_id"})
			c.choice(line, where+".detail", p["detail"], openAIDetail...)
			if p["file_id"] == nil {
				c.imageURL(line, where+".image_url", p["image_url"])
			}
		case "input_file":
			c.file(line, where, part)
		default:
			c.add(line, "value", "%s.type: %q is none of input_text, input_image and input_file", where, kind)
		}
	}
}

func (c *responses) file(line int, where string, part json.RawMessage) {
	p := c.object(line, where, part, []string{"type"}, []string{"file_id", "file_url", "filename", "file_data", "detail"})
	switch {
	case p["file_id"] != nil:
		c.filled(line, where+".file_id", p["file_id"])
	case p["file_url"] != nil:
		if url := c.text(line, where+".file_url", p["file_url"]); !isAddress(url, "http", "https") {
			c.add(line, "media", "%s.file_url: no address on the web", where)
		}
	default:
		if p["filename"] == nil {
			c.add(line, "media", "%s: data without a name", where)
		}
		c.dataURL(line, where+".file_data", c.text(line, where+".file_data", p["file_data"]), nil)
	}
}

// reasoning holds an item of reasoning. Its id is required by the reference; the API
// takes an item whose seal is enough, and refuses one under another id. Where reasoning is returned it has no seal.
func (c *responses) reasoning(line int, raw []byte) {
	required, optional := []string{"type", "summary", "encrypted_content"}, []string{"id", "content", "status"}
	if c.returning {
		required, optional = []string{"type", "id", "summary", "content"}, []string{"status"}
	}
	o := c.object(line, "item", raw, required, optional)
	c.id(line, o["id"], "rs_")
	if !c.returning {
		c.filled(line, "encrypted_content", o["encrypted_content"])
	}
	c.choice(line, "status", o["status"], itemStates...)
	for name, kind := range map[string]string{"summary": "summary_text", "content": "reasoning_text"} {
		if o[name] == nil {
			continue
		}
		for i, part := range c.list(line, name, o[name]) {
			where := fmt.Sprintf("%s[%d]", name, i)
			p := c.object(line, where, part, []string{"type", "text"}, nil)
			c.choice(line, where+".type", p["type"], kind)
			if text := c.text(line, where+".text", p["text"]); text == "" && c.returning && name == "content" {
				c.add(line, "thinking", "%s: empty", where)
			}
		}
	}
}
