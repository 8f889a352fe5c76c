package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// responsesItem is an item of the input of OpenAI's Responses API.
type responsesItem struct {
	Type             string          `json:"type"`
	Role             string          `json:"role"`
	Content          json.RawMessage `json:"content"`
	Summary          []responsesPart `json:"summary"`
	EncryptedContent string          `json:"encrypted_content"`
	CallID           string          `json:"call_id"`
	Namespace        string          `json:"namespace"`
	Name             string          `json:"name"`
	Arguments        json.RawMessage `json:"arguments"` // a string; for a search, an object
	Tools            json.RawMessage `json:"tools"`
	Input            string          `json:"input"`
	Output           json.RawMessage `json:"output"`
	Action           json.RawMessage `json:"action"`
}

type responsesPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL string `json:"image_url"`
}

// Turns parses a request of OpenAI's Responses API.
func (codexCLI) Turns(body []byte) ([]Turn, error) {
	var request struct {
		Instructions string          `json:"instructions"`
		Input        []responsesItem `json:"input"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	var turns []Turn
	if request.Instructions != "" {
		turns = append(turns, Turn{Role: "system", Kind: Text, Body: request.Instructions})
	}
	for _, it := range request.Input {
		more, err := it.turns()
		if err != nil {
			return nil, err
		}
		turns = append(turns, more...)
	}
	return turns, nil
}

func (it responsesItem) turns() ([]Turn, error) {
	switch it.Type {
	case "message", "":
		return it.message()
	case "reasoning":
		var texts []string
		for _, s := range it.Summary {
			texts = append(texts, s.Text)
		}
		return []Turn{{Role: "assistant", Kind: Thinking, Body: strings.Join(texts, "\n\n"), Secret: it.EncryptedContent}}, nil
	case "function_call":
		return []Turn{{Role: "assistant", Kind: Call, ID: it.CallID, Name: it.Namespace + it.Name, Body: compacted(textOr(it.Arguments))}}, nil
	case "custom_tool_call":
		// contextd represents such a call as one with an object: docs/harness/codex.md.
		return []Turn{{Role: "assistant", Kind: Call, ID: it.CallID, Name: it.Name, Body: quoteInput(it.Input)}}, nil
	case "local_shell_call":
		return []Turn{{Role: "assistant", Kind: Call, ID: it.CallID, Name: "local_shell", Body: withoutNulls(string(it.Action))}}, nil
	case "tool_search_call":
		return []Turn{{Role: "assistant", Kind: Call, ID: it.CallID, Name: "tool_search", Body: compacted(textOr(it.Arguments))}}, nil
	case "tool_search_output":
		return []Turn{{Kind: Result, ID: it.CallID, Body: compacted(string(it.Tools))}}, nil
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		return it.output()
	case "web_search_call":
		return []Turn{{Role: "assistant", Kind: Other, Name: it.Type, Body: compacted(string(it.Action))}}, nil
	case "compaction", "compaction_summary":
		return []Turn{{Kind: Other, Name: "compaction", Body: it.EncryptedContent}}, nil
	}
	return nil, fmt.Errorf("an item of the type %q", it.Type)
}

func (it responsesItem) message() ([]Turn, error) {
	role := it.Role
	if role == "developer" {
		role = "system"
	}
	parts, err := responsesParts(it.Content)
	if err != nil {
		return nil, err
	}
	var turns []Turn
	for _, p := range parts {
		switch p.Type {
		case "input_text", "output_text", "text":
			turns = append(turns, Turn{Role: role, Kind: Text, Body: p.Text})
		case "input_image":
			turns = append(turns, Turn{Role: role, Kind: Media, Body: p.ImageURL})
		default:
			return nil, fmt.Errorf("a part of the type %q", p.Type)
		}
	}
	return turns, nil
}

func (it responsesItem) output() ([]Turn, error) {
	parts, err := responsesParts(it.Output)
	if err != nil {
		return nil, err
	}
	var said []string
	for _, p := range parts {
		said = append(said, p.Text+p.ImageURL)
	}
	return []Turn{{Kind: Result, ID: it.CallID, Body: strings.Join(said, "\n")}}, nil
}

// responsesParts parses a content, which may be a string.
func responsesParts(raw json.RawMessage) ([]responsesPart, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []responsesPart{{Type: "text", Text: text}}, nil
	}
	var parts []responsesPart
	err := json.Unmarshal(raw, &parts)
	return parts, err
}

// textOr is the value of a JSON string; other JSON is returned unchanged.
func textOr(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// compacted removes the whitespace between JSON tokens, as contextd's own format does. Text that is not JSON
// is returned unchanged.
func compacted(arguments string) string {
	var out bytes.Buffer
	if json.Compact(&out, []byte(arguments)) != nil {
		return arguments
	}
	return out.String()
}

// withoutNulls removes null members from a JSON object, since Codex adds them.
func withoutNulls(raw string) string {
	var members map[string]any
	if json.Unmarshal([]byte(raw), &members) != nil {
		return raw
	}
	maps.DeleteFunc(members, func(_ string, v any) bool { return v == nil })
	again, err := json.Marshal(members)
	if err != nil {
		return raw
	}
	return string(again)
}

func quoteInput(text string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(object{"input": text}); err != nil {
		panic(err) // a string can be encoded
	}
	return strings.TrimSpace(out.String())
}
