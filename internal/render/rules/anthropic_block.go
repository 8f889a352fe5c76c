package rules

import (
	"encoding/json"
	"fmt"
	"strings"
)

// shape is which members a block has and where it may be.
type shape struct {
	required, optional []string
	places             string
}

// anthropicShapes are the blocks of the API. A result is the place within a tool_result,
// an error that of one that failed.
var anthropicShapes = map[string]shape{
	"text":              {[]string{"text"}, []string{"cache_control", "citations"}, "system user assistant result error"},
	"thinking":          {[]string{"thinking", "signature"}, nil, "assistant"},
	"redacted_thinking": {[]string{"data"}, nil, "assistant"},
	"tool_use":          {[]string{"id", "name", "input"}, []string{"cache_control", "caller", "toolset_name"}, "assistant"},
	"tool_result":       {[]string{"tool_use_id"}, []string{"content", "is_error", "cache_control"}, "user"},
	"image":             {[]string{"source"}, []string{"cache_control", "transformations"}, "user result"},
	"document":          {[]string{"source"}, []string{"cache_control", "citations", "context", "title"}, "user result"},
	"search_result":     {[]string{"content", "source", "title"}, []string{"cache_control", "citations"}, "user result"},
	"tool_reference":    {[]string{"tool_name"}, []string{"cache_control"}, "result"},
	"container_upload":  {[]string{"file_id"}, []string{"cache_control"}, "user"},
	"server_tool_use":   {[]string{"id", "name", "input"}, []string{"cache_control", "caller"}, "assistant"},
	"mcp_tool_use":      {[]string{"id", "name", "input", "server_name"}, []string{"cache_control"}, "assistant"},
	"mcp_tool_result":   {[]string{"tool_use_id"}, []string{"cache_control", "content", "is_error"}, "assistant"},
}

var anthropicServerResult = shape{[]string{"tool_use_id", "content"}, []string{"cache_control"}, "assistant"}

// anthropicCitations are the members of a citation beside its type and cited_text.
var anthropicCitations = map[string][]string{
	"char_location":              {"document_index", "document_title", "start_char_index", "end_char_index"},
	"page_location":              {"document_index", "document_title", "start_page_number", "end_page_number"},
	"content_block_location":     {"document_index", "document_title", "start_block_index", "end_block_index"},
	"search_result_location":     {"search_result_index", "source", "title", "start_block_index", "end_block_index"},
	"web_search_result_location": {"encrypted_index", "title", "url"},
}

func anthropicShape(kind string) (shape, bool) {
	switch kind {
	case "web_search_tool_result", "web_fetch_tool_result":
		return shape{anthropicServerResult.required, []string{"cache_control", "caller"}, anthropicServerResult.places}, true
	case "code_execution_tool_result", "bash_code_execution_tool_result",
		"text_editor_code_execution_tool_result", "tool_search_tool_result":
		return anthropicServerResult, true
	}
	s, ok := anthropicShapes[kind]
	return s, ok
}

// block holds one block to the API and returns its type.
func (c *anthropicCheck) block(line int, where string, raw json.RawMessage, place string, t *anthropicTurn) string {
	o, ok := c.open(line, where, raw)
	if !ok {
		return ""
	}
	kind := c.text(line, where, o["type"])
	s, ok := anthropicShape(kind)
	if !ok {
		c.add(line, "type", "%s: no block is %q", where, kind)
		return kind
	}
	if !strings.Contains(" "+s.places+" ", " "+place+" ") {
		c.add(line, "place", "%s: %s in %s", where, kind, place)
	}
	c.members(line, where, o, append([]string{"type"}, s.required...), s.optional)
	if mark, ok := o["cache_control"]; ok {
		c.mark(line, where, mark)
	}
	switch kind {
	case "text":
		text := c.text(line, where, o["text"])
		if blank(text) {
			c.add(line, "text", "%s: empty", where)
		}
		c.citations(line, where, o["citations"])
		if t != nil {
			t.ending = text
		}
	case "thinking":
		if c.text(line, where, o["thinking"]) == "" && c.returning {
			c.add(line, "thinking", "%s: empty", where)
		}
		if !c.returning && blank(c.text(line, where, o["signature"])) {
			c.add(line, "thinking", "%s: no signature", where)
		}
	case "redacted_thinking":
		if blank(c.text(line, where, o["data"])) {
			c.add(line, "thinking", "%s: no data", where)
		}
	case "tool_use":
		c.call(line, where, o, t)
	case "tool_result":
		c.result(line, where, o, t)
	case "image":
		c.source(line, where, o["source"], anthropicImageSources)
	case "document":
		c.source(line, where, o["source"], anthropicDocumentSources)
		for _, name := range []string{"context", "title"} {
			if raw := o[name]; string(raw) != "null" {
				c.text(line, where+"."+name, raw)
			}
		}
		c.cites(line, where, kind, o["citations"])
	case "search_result":
		c.cites(line, where, kind, o["citations"])
	default:
		if of, ok := strings.CutSuffix(kind, "_tool_result"); ok && of != "mcp" && o["content"] != nil {
			c.results(line, where, of, o["content"])
		}
	}
	return kind
}

// citations holds those of a text, which has none where they are null.
func (c *anthropicCheck) citations(line int, where string, raw json.RawMessage) {
	if raw == nil || string(raw) == "null" {
		return
	}
	for i, citation := range c.list(line, where+".citations", raw) {
		at := fmt.Sprintf("%s.citations[%d]", where, i)
		o, _ := c.open(line, at, citation)
		kind := c.text(line, at, o["type"])
		of, ok := anthropicCitations[kind]
		if !ok {
			c.add(line, "type", "%s: no citation is %q", at, kind)
			continue
		}
		c.members(line, at, o, append([]string{"type", "cited_text"}, of...), nil)
		for _, name := range of {
			switch value := o[name]; {
			case value == nil:
			case strings.HasSuffix(name, "_number"), strings.HasSuffix(name, "_index") && name != "encrypted_index":
				if json.Unmarshal(value, new(int)) != nil || string(value) == "null" {
					c.add(line, "type", "%s.%s: no number", at, name)
				}
			case !strings.HasSuffix(name, "title") || string(value) != "null":
				c.text(line, at+"."+name, value)
			}
		}
	}
}

// cites holds documents and search results to have citations all or none, each by themselves.
func (c *anthropicCheck) cites(line int, where, kind string, raw json.RawMessage) {
	enabled := false
	if raw != nil && string(raw) != "null" {
		enabled = c.flag(line, where, c.object(line, where+".citations", raw, nil, []string{"enabled"})["enabled"])
	}
	if before, ok := c.cited[kind]; ok && before != enabled {
		c.add(line, "citations", "%s: enabled for some and not for others", where)
	}
	c.cited[kind] = enabled
}

func (c *anthropicCheck) call(line int, where string, o object, t *anthropicTurn) {
	id := c.text(line, where, o["id"])
	switch {
	case !anthropicID.MatchString(id):
		c.add(line, "id", "%s: %q", where, id)
	case c.ids[id]:
		c.add(line, "id", "%s: %s is used twice", where, id)
	}
	c.ids[id] = true
	if name := c.text(line, where, o["name"]); !anthropicName.MatchString(name) {
		c.add(line, "name", "%s: %q", where, name)
	}
	if set := o["toolset_name"]; set != nil && !anthropicName.MatchString(c.text(line, where, set)) {
		c.add(line, "name", "%s: toolset %s", where, set)
	}
	if len(o["input"]) == 0 || o["input"][0] != '{' {
		c.add(line, "input", "%s: no object", where)
	}
	if t != nil {
		t.calls = append(t.calls, id)
	}
}

func (c *anthropicCheck) result(line int, where string, o object, t *anthropicTurn) {
	if t != nil {
		t.results = append(t.results, c.text(line, where, o["tool_use_id"]))
	}
	place := "result"
	failed := c.flag(line, where, o["is_error"])
	if failed {
		place = "error"
	}
	var blocks []json.RawMessage
	raw := o["content"]
	if len(raw) > 0 && raw[0] == '"' {
		if failed && blank(c.text(line, where, raw)) {
			c.add(line, "failure", "%s: empty", where)
		}
		return
	}
	if raw != nil {
		blocks = c.list(line, where, raw)
	}
	for i, block := range blocks {
		c.block(line, fmt.Sprintf("%s.content[%d]", where, i), block, place, nil)
	}
	if failed && len(blocks) == 0 {
		c.add(line, "failure", "%s: empty", where)
	}
}

// mark holds a cache breakpoint: the longer-lived ones come first.
func (c *anthropicCheck) mark(line int, where string, raw json.RawMessage) {
	c.marks++
	o := c.object(line, where+".cache_control", raw, []string{"type"}, []string{"ttl"})
	if kind := c.text(line, where, o["type"]); kind != "ephemeral" {
		c.add(line, "cache", "%s: type %q", where, kind)
	}
	switch ttl := c.text(line, where, o["ttl"]); ttl {
	case "", "5m":
		c.short = true
	case "1h":
		if c.short {
			c.add(line, "cache", "%s: an hour behind five minutes", where)
		}
	default:
		c.add(line, "cache", "%s: ttl %q", where, ttl)
	}
}
