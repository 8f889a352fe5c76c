package render

import (
	"encoding/json"
	"slices"
	"strings"
)

// outcome is the form of a server tool's result: the required members with the kinds of their values, and optional
// members, which may be null.
type outcome struct {
	of       string // the type of the result
	required map[string]valueKind
	optional []string
}

type valueKind uint8

const (
	aText valueKind = iota
	aNumber
	aFlag
	aDocument
	toolReferences
	writtenFiles
)

var (
	itFailed = map[string]valueKind{"error_code": aText}
	codeRan  = map[string]valueKind{"stdout": aText, "stderr": aText, "return_code": aNumber, "content": writtenFiles}
)

// anthropicOutcomes are the forms of server tools' results, by type. The API refuses a result that a harness kept in
// part, for instance without its sealed content, and with it every later request.
var anthropicOutcomes = map[string]outcome{
	"web_search_result": {"web_search", map[string]valueKind{"encrypted_content": aText, "title": aText, "url": aText}, []string{"page_age"}},
	"web_fetch_result":  {"web_fetch", map[string]valueKind{"url": aText, "content": aDocument}, []string{"retrieved_at"}},

	"code_execution_result":      {"code_execution", codeRan, nil},
	"bash_code_execution_result": {"bash_code_execution", codeRan, nil},
	"encrypted_code_execution_result": {"code_execution", map[string]valueKind{
		"encrypted_stdout": aText, "stderr": aText, "return_code": aNumber, "content": writtenFiles,
	}, nil},

	"text_editor_code_execution_view_result": {
		"text_editor_code_execution", map[string]valueKind{"content": aText, "file_type": aText}, []string{"num_lines", "start_line", "total_lines"},
	},
	"text_editor_code_execution_create_result":      {"text_editor_code_execution", map[string]valueKind{"is_file_update": aFlag}, nil},
	"text_editor_code_execution_str_replace_result": {"text_editor_code_execution", nil, []string{"lines", "new_lines", "new_start", "old_lines", "old_start"}},

	"tool_search_tool_search_result": {"tool_search", map[string]valueKind{"tool_references": toolReferences}, nil},

	"web_search_tool_result_error":                 {"web_search", itFailed, nil},
	"web_fetch_tool_result_error":                  {"web_fetch", itFailed, nil},
	"code_execution_tool_result_error":             {"code_execution", itFailed, nil},
	"bash_code_execution_tool_result_error":        {"bash_code_execution", itFailed, nil},
	"text_editor_code_execution_tool_result_error": {"text_editor_code_execution", itFailed, []string{"error_message"}},
	"tool_search_tool_result_error":                {"tool_search", itFailed, []string{"error_message"}},
}

// is reports whether a value is of a kind.
func (k valueKind) is(raw json.RawMessage) bool {
	switch k {
	case aNumber:
		return isNumber(raw)
	case aFlag:
		return raw[0] == 't' || raw[0] == 'f'
	case aDocument:
		return readAnthropic(string(raw)).Type == "document" && anthropicSound("document", string(raw))
	case toolReferences:
		return blocksOf(raw, "tool_reference")
	case writtenFiles:
		var files []json.RawMessage
		return json.Unmarshal(raw, &files) == nil && files != nil && !slices.ContainsFunc(files, func(raw json.RawMessage) bool {
			m, ok := members(string(raw), []string{"type", "file_id"}, nil)
			return !ok || !strings.HasSuffix(textIn(m["type"]), "code_execution_output") || textIn(m["file_id"]) == ""
		})
	default:
		return isText(raw)
	}
}

func isText(raw json.RawMessage) bool { return raw[0] == '"' }

func isNumber(raw json.RawMessage) bool { return raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9' }

// textOrNull reports whether a member is a text, null, or not there.
func textOrNull(raw json.RawMessage) bool {
	return len(raw) == 0 || isText(raw) || string(raw) == "null"
}

// soundResult reports whether the content of a server tool's result has a form that the API takes: a list for a search,
// one object for anything else.
func soundResult(of string, content json.RawMessage) bool {
	if content[0] != '[' {
		kind, ok := soundOutcome(of, content)
		return ok && kind != "web_search_result"
	}
	var found []json.RawMessage
	return of == "web_search_tool_result" && json.Unmarshal(content, &found) == nil && !slices.ContainsFunc(found, func(raw json.RawMessage) bool {
		kind, ok := soundOutcome(of, raw)
		return !ok || kind != "web_search_result"
	})
}

func soundOutcome(of string, raw json.RawMessage) (kind string, ok bool) {
	kind = readAnthropic(string(raw)).Type
	form, known := anthropicOutcomes[kind]
	if !known || form.of+"_tool_result" != of {
		return kind, false
	}
	required := []string{"type"}
	for name := range form.required {
		required = append(required, name)
	}
	m, ok := members(string(raw), required, form.optional)
	for name, value := range form.required {
		ok = ok && value.is(m[name])
	}
	return kind, ok
}

// soundCitation reports whether the members of a citation are of their types.
func soundCitation(m map[string]json.RawMessage) bool {
	for name, value := range m {
		switch {
		case strings.HasSuffix(name, "_number"), strings.HasSuffix(name, "_index") && name != "encrypted_index":
			if !isNumber(value) {
				return false
			}
		case !isText(value) && (!strings.HasSuffix(name, "title") || !textOrNull(value)):
			return false
		}
	}
	return true
}
