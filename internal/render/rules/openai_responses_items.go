package rules

import "encoding/json"

// provided are the items that the provider made and answered itself, by how their ids
// begin and what they require.
var provided = map[string]struct {
	begins             string
	required, optional []string
	states             []string
}{
	"web_search_call": {
		"ws_", []string{"type", "id", "status", "action"}, nil,
		[]string{"in_progress", "searching", "completed", "failed", "incomplete"},
	},
	"file_search_call": {
		"fs_", []string{"type", "id", "status", "queries"}, []string{"results"},
		[]string{"in_progress", "searching", "completed", "incomplete", "failed"},
	},
	"code_interpreter_call": {
		"ci_", []string{"type", "id", "status", "code", "container_id", "outputs"}, nil,
		[]string{"in_progress", "interpreting", "completed", "incomplete", "failed"},
	},
	"image_generation_call": {
		"ig_", []string{"type", "id", "status", "result"},
		[]string{"action", "background", "error", "output_format", "quality", "revised_prompt", "size", "svg_usage"},
		[]string{"in_progress", "generating", "completed", "failed"},
	},
	"mcp_call": {
		"mcp_", []string{"type", "id", "name", "arguments", "server_label"}, []string{"approval_request_id", "error", "output", "status"},
		[]string{"in_progress", "completed", "incomplete", "calling", "failed"},
	},
	"mcp_list_tools": {"mcpl_", []string{"type", "id", "server_label", "tools"}, []string{"error"}, nil},
	"compaction":     {"cmp_", []string{"type", "encrypted_content"}, []string{"id"}, nil},
}

func (c *responses) provided(line int, kind string, raw []byte) {
	form, ok := provided[kind]
	if !ok {
		c.add(line, "value", "type: %q is no item that may stand without an answer of the runtime", kind)
		return
	}
	o := c.object(line, "item", raw, form.required, form.optional)
	c.id(line, o["id"], form.begins)
	if form.states != nil {
		c.choice(line, "status", o["status"], form.states...)
	}
	switch kind {
	case "web_search_call":
		c.search(line, o["action"])
	case "compaction":
		c.filled(line, "encrypted_content", o["encrypted_content"])
	case "mcp_call":
		c.text(line, "arguments", o["arguments"])
	case "image_generation_call":
		c.base64(line, "result", c.text(line, "result", o["result"]))
	}
}

// search holds what a web search did.
func (c *responses) search(line int, raw json.RawMessage) {
	required, optional := []string{"type"}, []string{"query", "queries", "sources"}
	switch c.choice(line, "action.type", quoted(c.kind(line, "action", raw)), "search", "open_page", "find_in_page") {
	case "open_page":
		optional = []string{"url"}
	case "find_in_page":
		required, optional = []string{"type", "url", "pattern"}, nil
	}
	c.object(line, "action", raw, required, optional)
}
