package render

import (
	"encoding/json"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// responsesForm is what an item of OpenAI's that is carried as it came is made of.
type responsesForm struct {
	// begins is what the ids of such items begin with.
	begins             string
	required, optional []string
	states             []string
}

// responsesForms are the items that the provider made and answered itself. Those that
// wait for an answer of the runtime are calls, and have their place in the log as such.
var responsesForms = map[string]responsesForm{
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
	"mcp_call": {
		"mcp_", []string{"type", "id", "arguments", "name", "server_label"}, []string{"status", "error", "output", "approval_request_id"},
		[]string{"in_progress", "completed", "incomplete", "calling", "failed"},
	},
	"mcp_list_tools": {"mcpl_", []string{"type", "id", "server_label", "tools"}, []string{"error"}, nil},
	"image_generation_call": {
		"ig_", []string{"type", "id", "result", "status"},
		[]string{"action", "background", "output_format", "quality", "revised_prompt", "size"},
		[]string{"in_progress", "completed", "generating", "failed"},
	},
	"compaction": {"cmp_", []string{"type", "encrypted_content"}, []string{"id"}, nil},
	"message": {
		"msg_", []string{"type", "id", "role", "status", "content"}, []string{"phase"},
		[]string{"in_progress", "completed", "incomplete"},
	},
}

// native appends a block of OpenAI's as the item or the content that it is, and else
// what it was.
func (t *responsesTurn) native(i int, b eventlog.ProviderBlock) {
	parts, said := outputParts(b)
	switch {
	case b.Provider == providerOpenAI && !t.loose && ownItem(b.JSON):
		var of struct {
			ID string `json:"id"`
		}
		_ = json.Unmarshal([]byte(b.JSON), &of) // ownItem has read it
		t.emitNamed(i, of.ID, appendNative(nil, b.JSON), nativeKind(b))
	case said:
		o := object{dst: []byte{'{'}}
		o.always("type", "message")
		id := madeUpID("msg_", &t.message, i, b.JSON)
		o.always("id", id)
		o.always("role", "assistant")
		o.always("status", "completed")
		t.beside.take(&o, providerOpenAI, "phase", responsesPhase)
		whole, _ := wholePairs(parts)
		o.raw("content", whole)
		t.emitNamed(i, id, append(o.dst, '}'), nativeKind(b))
	default:
		t.others(i, b)
	}
}

// others appends what a block says that the API does not take as it is.
func (t *responsesTurn) others(i int, b eventlog.ProviderBlock) {
	kind := nativeKind(b)
	switch text, ok := saidText(b); {
	case ok:
		t.note(i, LeftOut, "citations")
		t.text(i, text)
	case kind == thoughtSignature:
		t.note(i, LeftOut, "reasoning of gemini")
	default:
		t.describe(i, kind)
	}
}

// outputParts is the content of a block that is a message of OpenAI's models, or a part
// of one, such as a refusal or a text with citations.
func outputParts(b eventlog.ProviderBlock) (list string, ok bool) {
	switch {
	case b.Provider != providerOpenAI:
		return "", false
	case outputPart(b.JSON):
		return "[" + b.JSON + "]", true
	}
	var of struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal([]byte(b.JSON), &of) != nil || of.Type != "message" || !ownItem(b.JSON) {
		return "", false
	}
	return string(of.Content), true
}

// annotations are the citations of a text, by their required members.
var annotations = map[string][]string{
	"file_citation":           {"type", "file_id", "filename", "index"},
	"url_citation":            {"type", "url", "title", "start_index", "end_index"},
	"container_file_citation": {"type", "container_id", "file_id", "filename", "start_index", "end_index"},
	"file_path":               {"type", "file_id", "index"},
}

// outputPart reports whether a block is a part of what a model said: a refusal, or a text
// with its citations.
func outputPart(raw string) bool {
	if _, ok := openAIRefusal(providerOpenAI, raw); ok {
		return true
	}
	m, ok := members(raw, []string{"type", "text", "annotations"}, nil)
	var list []json.RawMessage
	if !ok || textIn(m["type"]) != "output_text" || hollow(textIn(m["text"])) || json.Unmarshal(m["annotations"], &list) != nil || list == nil {
		return false
	}
	return !slices.ContainsFunc(list, func(raw json.RawMessage) bool { return !annotation(raw) })
}

func annotation(raw json.RawMessage) bool {
	var of struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &of) != nil {
		return false
	}
	required, known := annotations[of.Type]
	m, ok := members(string(raw), required, nil)
	if !known || !ok {
		return false
	}
	for name, value := range m {
		if index := name == "index" || name == "start_index" || name == "end_index"; index {
			var n int64
			if ok = json.Unmarshal(value, &n) == nil && value[0] != 'n'; !ok {
				return false
			}
		} else if value[0] != '"' {
			return false
		}
	}
	return true
}

// ownItem reports whether a block is an item that can be sent as it came.
func ownItem(raw string) bool {
	var of struct {
		Type string `json:"type"`
	}
	if json.Unmarshal([]byte(raw), &of) != nil {
		return false
	}
	form, ok := responsesForms[of.Type]
	if !ok {
		return false
	}
	m, ok := members(raw, form.required, form.optional)
	if !ok || textIn(m["type"]) != of.Type {
		return false
	}
	if id, there := m["id"]; there && !itemID(textIn(id), form.begins) {
		return false
	}
	for _, name := range []string{"encrypted_content", "name", "server_label", "container_id"} {
		if v, there := m[name]; there && hollow(textIn(v)) {
			return false
		}
	}
	if status, there := m["status"]; there && !slices.Contains(form.states, textIn(status)) {
		return false
	}
	return ownParts(of.Type, m)
}

// ownParts looks into what an item is made of.
func ownParts(kind string, m map[string]json.RawMessage) bool {
	switch kind {
	case "web_search_call":
		return searchAction(string(m["action"]))
	case "file_search_call":
		return stringList(m["queries"]) && (empty(m["results"]) || listOf(m["results"], nil, []string{"attributes", "file_id", "filename", "score", "text"}, foundFile))
	case "code_interpreter_call":
		return textOrNull(m["code"]) && (empty(m["outputs"]) || listOf(m["outputs"], []string{"type"}, []string{"logs", "url"}, codeOutput))
	case "mcp_call":
		return isText(m["arguments"]) && empty(m["error"]) && textOrNull(m["output"]) && empty(m["approval_request_id"])
	case "mcp_list_tools":
		return empty(m["error"]) && listOf(m["tools"], []string{"name", "input_schema"}, []string{"annotations", "description"}, func(m map[string]json.RawMessage) bool {
			return !hollow(textIn(m["name"])) && textOrNull(m["description"])
		})
	case "image_generation_call":
		for name, choices := range imageChoices {
			if !empty(m[name]) && !slices.Contains(choices, textIn(m[name])) {
				return false
			}
		}
		return isBase64(textIn(m["result"])) && textOrNull(m["revised_prompt"]) && textOrNull(m["size"])
	case "message":
		var parts []json.RawMessage
		if textIn(m["role"]) != "assistant" || !empty(m["phase"]) && !responsesPhase(string(m["phase"])) || json.Unmarshal(m["content"], &parts) != nil || len(parts) == 0 {
			return false
		}
		return !slices.ContainsFunc(parts, func(part json.RawMessage) bool { return !outputPart(string(part)) })
	}
	return true
}

// imageChoices are what members of an image may say.
var imageChoices = map[string][]string{
	"action": {"generate", "edit", "auto"}, "background": {"transparent", "opaque", "auto"},
	"output_format": {"png", "webp", "jpeg", "gif", "svg"}, "quality": {"low", "medium", "high", "xhigh", "max", "auto"},
}

// empty reports whether a member is not there or null, as the API gives what it has nothing for.
func empty(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// listOf reports whether a JSON text is a list of objects that have the required members, perhaps the optional ones, and
// are sound.
func listOf(raw json.RawMessage, required, optional []string, sound func(map[string]json.RawMessage) bool) bool {
	var list []json.RawMessage
	return json.Unmarshal(raw, &list) == nil && list != nil && !slices.ContainsFunc(list, func(raw json.RawMessage) bool {
		m, ok := members(string(raw), required, optional)
		return !ok || !sound(m)
	})
}

func foundFile(m map[string]json.RawMessage) bool {
	score, scored := m["score"]
	for _, name := range []string{"file_id", "filename", "text"} {
		if value, there := m[name]; there && !isText(value) {
			return false
		}
	}
	var attributes map[string]any
	if !empty(m["attributes"]) && json.Unmarshal(m["attributes"], &attributes) != nil {
		return false
	}
	for _, value := range attributes {
		switch value.(type) {
		case string, float64, bool:
		default:
			return false
		}
	}
	return !scored || isNumber(score)
}

func codeOutput(m map[string]json.RawMessage) bool {
	said := map[string]string{"logs": "logs", "image": "url"}[textIn(m["type"])]
	return len(m) == 2 && said != "" && m[said] != nil && isText(m[said])
}

// searchAction reports whether an action is one of a web search.
func searchAction(raw string) bool {
	var of struct {
		Type string `json:"type"`
	}
	if json.Unmarshal([]byte(raw), &of) != nil {
		return false
	}
	var required, optional []string
	switch of.Type {
	case "search":
		optional = []string{"query", "queries", "sources"}
	case "open_page":
		optional = []string{"url"}
	case "find_in_page":
		required = []string{"url", "pattern"}
	default:
		return false
	}
	m, ok := members(raw, append(required, "type"), optional)
	if queries, there := m["queries"]; there {
		ok = ok && stringList(queries)
		delete(m, "queries")
	}
	if sources, there := m["sources"]; there {
		ok = ok && listOf(sources, []string{"type", "url"}, nil, func(m map[string]json.RawMessage) bool {
			return textIn(m["type"]) == "url" && isText(m["url"])
		})
		delete(m, "sources")
	}
	return ok && texts(m)
}

// stringList reports whether a JSON text is a list of strings.
func stringList(raw json.RawMessage) bool {
	var list []*string
	return json.Unmarshal(raw, &list) == nil && list != nil && !slices.Contains(list, nil)
}
