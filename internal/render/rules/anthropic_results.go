package rules

import (
	"encoding/json"
	"fmt"
	"slices"
)

// anthropicContents are what results of server tools hold, by type: the result that they are of,
// and their members.
var anthropicContents = map[string]struct {
	of                 string
	required, optional []string
}{
	"web_search_result":                             {"web_search", []string{"encrypted_content", "title", "url"}, []string{"page_age"}},
	"web_search_tool_result_error":                  {"web_search", []string{"error_code"}, nil},
	"web_fetch_result":                              {"web_fetch", []string{"content", "url"}, []string{"retrieved_at"}},
	"web_fetch_tool_result_error":                   {"web_fetch", []string{"error_code"}, nil},
	"code_execution_result":                         {"code_execution", []string{"content", "return_code", "stderr", "stdout"}, nil},
	"encrypted_code_execution_result":               {"code_execution", []string{"content", "return_code", "stderr", "encrypted_stdout"}, nil},
	"code_execution_tool_result_error":              {"code_execution", []string{"error_code"}, nil},
	"bash_code_execution_result":                    {"bash_code_execution", []string{"content", "return_code", "stderr", "stdout"}, nil},
	"bash_code_execution_tool_result_error":         {"bash_code_execution", []string{"error_code"}, nil},
	"text_editor_code_execution_view_result":        {"text_editor_code_execution", []string{"content", "file_type"}, []string{"num_lines", "start_line", "total_lines"}},
	"text_editor_code_execution_create_result":      {"text_editor_code_execution", []string{"is_file_update"}, nil},
	"text_editor_code_execution_str_replace_result": {"text_editor_code_execution", nil, []string{"lines", "new_lines", "new_start", "old_lines", "old_start"}},
	"text_editor_code_execution_tool_result_error":  {"text_editor_code_execution", []string{"error_code"}, []string{"error_message"}},
	"tool_search_tool_search_result":                {"tool_search", []string{"tool_references"}, nil},
	"tool_search_tool_result_error":                 {"tool_search", []string{"error_code"}, []string{"error_message"}},
}

var (
	anthropicTexts = []string{"encrypted_content", "encrypted_stdout", "error_code", "file_type", "stderr", "stdout", "title", "url"}
	anthropicLists = []string{"content of code_execution", "content of bash_code_execution", "tool_references of tool_search"}
)

// results holds the content of a server tool's result: a list of what a search found, or else one
// object.
func (c *anthropicCheck) results(line int, where, of string, raw json.RawMessage) {
	where += ".content"
	if of == "web_search" && len(raw) > 0 && raw[0] == '[' {
		for i, found := range c.list(line, where, raw) {
			if at := fmt.Sprintf("%s[%d]", where, i); c.outcome(line, at, of, found) == "web_search_tool_result_error" {
				c.add(line, "type", "%s: an error in a list", at)
			}
		}
		return
	}
	if c.outcome(line, where, of, raw) == "web_search_result" {
		c.add(line, "type", "%s: no list", where)
	}
}

func (c *anthropicCheck) outcome(line int, where, of string, raw json.RawMessage) string {
	o, ok := c.open(line, where, raw)
	if !ok {
		return ""
	}
	kind := c.text(line, where, o["type"])
	form, ok := anthropicContents[kind]
	if !ok || form.of != of {
		c.add(line, "type", "%s: %q is no result of %s", where, kind, of)
		return kind
	}
	c.members(line, where, o, append([]string{"type"}, form.required...), form.optional)
	for _, name := range form.required {
		at := where + "." + name
		switch {
		case o[name] == nil:
		case slices.Contains(anthropicTexts, name):
			c.text(line, at, o[name])
		case slices.Contains(anthropicLists, name+" of "+of):
			member := "file_id"
			if of == "tool_search" {
				member = "tool_name"
			}
			for i, item := range c.list(line, at, o[name]) {
				c.object(line, fmt.Sprintf("%s[%d]", at, i), item, []string{"type", member}, []string{"cache_control"})
			}
		case kind == "web_fetch_result" && name == "content":
			document := anthropicShapes["document"]
			c.object(line, at, o[name], append([]string{"type"}, document.required...), document.optional)
		}
	}
	return kind
}
