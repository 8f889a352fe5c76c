package render

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// cacheMark is the member that marks what the provider is to cache.
const cacheMark = "cache_control"

// anthropicForm is which members a block of Anthropic's has. It is refused with any other,
// and with it every later request of the session.
type anthropicForm struct{ required, optional []string }

var (
	serverResult = anthropicForm{[]string{"type", "tool_use_id", "content"}, []string{cacheMark}}
	searchResult = anthropicForm{serverResult.required, []string{cacheMark, "caller"}}
)

var anthropicForms = map[string]anthropicForm{
	"text":             {[]string{"type", "text"}, []string{cacheMark, "citations"}},
	"image":            {[]string{"type", "source"}, []string{cacheMark, "transformations"}},
	"document":         {[]string{"type", "source"}, []string{cacheMark, "citations", "context", "title"}},
	"search_result":    {[]string{"type", "content", "source", "title"}, []string{cacheMark, "citations"}},
	"tool_reference":   {[]string{"type", "tool_name"}, []string{cacheMark}},
	"container_upload": {[]string{"type", "file_id"}, []string{cacheMark}},
	"server_tool_use":  {[]string{"type", "id", "name", "input"}, []string{cacheMark, "caller"}},
	"mcp_tool_use":     {[]string{"type", "id", "name", "input", "server_name"}, []string{cacheMark}},
	"mcp_tool_result":  {[]string{"type", "tool_use_id"}, []string{cacheMark, "content", "is_error"}},

	"web_search_tool_result":                 searchResult,
	"web_fetch_tool_result":                  searchResult,
	"code_execution_tool_result":             serverResult,
	"bash_code_execution_tool_result":        serverResult,
	"text_editor_code_execution_tool_result": serverResult,
	"tool_search_tool_result":                serverResult,
}

// anthropicCitations are what the citations of a text are made of. Those of an answer have
// a file_id too, which a request may not have.
var anthropicCitations = map[string][]string{
	"char_location":              {"type", "cited_text", "document_index", "document_title", "start_char_index", "end_char_index"},
	"page_location":              {"type", "cited_text", "document_index", "document_title", "start_page_number", "end_page_number"},
	"content_block_location":     {"type", "cited_text", "document_index", "document_title", "start_block_index", "end_block_index"},
	"search_result_location":     {"type", "cited_text", "search_result_index", "source", "title", "start_block_index", "end_block_index"},
	"web_search_result_location": {"type", "cited_text", "encrypted_index", "title", "url"},
}

// anthropicSound reports whether a block is of the form that its type has.
func anthropicSound(kind, raw string) bool {
	form := anthropicForms[kind]
	m, ok := members(raw, form.required, form.optional)
	if !ok || !anthropicDecoder.reads(raw) || kind != "text" && !soundConfig(m["citations"]) {
		return false
	}
	switch kind {
	case "text":
		return textIn(m["text"]) != "" && soundCitations(m["citations"])
	case "image", "document":
		return soundSource(kind, string(m["source"])) && textOrNull(m["title"]) && textOrNull(m["context"])
	case "search_result":
		return filled(m, "source", "title") && blocksOf(m["content"], "text")
	case "tool_reference":
		return filled(m, "tool_name")
	case "container_upload":
		return filled(m, "file_id")
	case "server_tool_use":
		id := textIn(m["id"])
		return serverID(id, "srvtoolu_") && !strings.Contains(id, "-") && m["input"][0] == '{'
	case "mcp_tool_use":
		return serverID(textIn(m["id"]), "mcptoolu_") && m["input"][0] == '{' && filled(m, "name", "server_name")
	case "mcp_tool_result":
		content, there := m["content"]
		return !there || content[0] == '"' || blocksOf(content, "text")
	default:
		return soundResult(kind, m["content"])
	}
}

// filled reports whether members are strings that say something.
func filled(m map[string]json.RawMessage, names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return hollow(textIn(m[name])) })
}

// serverID reports whether an id has the form of those that Anthropic gives.
func serverID(id, begins string) bool {
	rest, ok := strings.CutPrefix(id, begins)
	return ok && rest != "" && allOf(rest, wordByte)
}

// blocksOf reports whether a JSON text is a list of sound blocks of some types.
func blocksOf(raw json.RawMessage, kinds ...string) bool {
	var blocks []json.RawMessage
	if json.Unmarshal(raw, &blocks) != nil || blocks == nil {
		return false
	}
	return !slices.ContainsFunc(blocks, func(block json.RawMessage) bool {
		head := readAnthropic(string(block))
		return !slices.Contains(kinds, head.Type) || !anthropicSound(head.Type, string(block)) || head.Type == "text" && hollow(head.Text)
	})
}

// soundCitations reports whether the citations of a text are such as a request may have.
func soundCitations(raw json.RawMessage) bool {
	var list []json.RawMessage
	if len(raw) > 0 && json.Unmarshal(raw, &list) != nil {
		return false
	}
	return !slices.ContainsFunc(list, func(citation json.RawMessage) bool {
		var of struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(citation, &of) != nil {
			return true
		}
		required, known := anthropicCitations[of.Type]
		m, ok := members(string(citation), required, nil)
		return !known || !ok || !soundCitation(m)
	})
}

// soundConfig reports whether a member says if there are to be citations, or is not there.
func soundConfig(raw json.RawMessage) bool {
	if len(raw) == 0 || string(raw) == "null" {
		return true
	}
	m, ok := members(string(raw), nil, []string{"enabled"})
	enabled, said := m["enabled"]
	return ok && (!said || string(enabled) == "true" || string(enabled) == "false")
}

// soundSource reports whether an image or a document comes from where it may, and holds
// what it says.
func soundSource(kind, raw string) bool {
	var of struct {
		Type string `json:"type"`
	}
	if json.Unmarshal([]byte(raw), &of) != nil {
		return false
	}
	document := kind == "document"
	switch of.Type {
	case "base64":
		m, ok := members(raw, []string{"type", "media_type", "data"}, nil)
		mime, data := textIn(m["media_type"]), textIn(m["data"])
		if document {
			return ok && mime == "application/pdf" && soundData(mime, data)
		}
		raw, err := base64.StdEncoding.DecodeString(data)
		return ok && err == nil && anthropicImages[mime] && soundData(mime, data) && anthropicFits(string(raw))
	case "text":
		m, ok := members(raw, []string{"type", "media_type", "data"}, nil)
		return ok && document && textIn(m["media_type"]) == "text/plain" && filled(m, "data")
	case "url":
		m, ok := members(raw, []string{"type", "url"}, nil)
		return ok && addressed(textIn(m["url"]), "https")
	case "file":
		m, ok := members(raw, []string{"type", "file_id"}, nil)
		return ok && filled(m, "file_id")
	case "content":
		m, ok := members(raw, []string{"type", "content"}, nil)
		return ok && document && (filled(m, "content") || blocksOf(m["content"], "text", "image"))
	}
	return false
}
