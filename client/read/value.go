package read

import (
	"encoding/json"
	"strings"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// value is a JSON value with its original bytes; nil is an absent one. Reading it as another type than it has yields
// nothing.
type value []byte

// members are those of an object; of repeated ones the last.
func (v value) members() map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(v, &m) != nil {
		return nil
	}
	return m
}

func (v value) get(name string) value {
	if found := v.members()[name]; string(found) != "null" {
		return value(found)
	}
	return nil
}

func (v value) elements() []value {
	var list []json.RawMessage
	if json.Unmarshal(v, &list) != nil {
		return nil
	}
	out := make([]value, len(list))
	for i, e := range list {
		out[i] = value(e)
	}
	return out
}

// text is a string. What UTF-8 does not have, such as half a surrogate pair, is U+FFFD in it.
func (v value) text() string {
	var s string
	if json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

func (v value) isList() bool   { return len(v) > 0 && v[0] == '[' }
func (v value) isObject() bool { return len(v) > 0 && v[0] == '{' }

func (v value) isTrue() bool { return string(v) == "true" }

func text(s string) *contextdv1.Block {
	return &contextdv1.Block{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: s}}}
}

func thinking(t *contextdv1.Thinking) *contextdv1.Block {
	return &contextdv1.Block{Kind: &contextdv1.Block_Thinking{Thinking: t}}
}

// call is a call after the members of its item. A signature that a proxy appended to its id is one of these, unless the item
// has others.
func call(members []*contextdv1.Block, id, name string, arguments []byte) []*contextdv1.Block {
	id, signature := splitCallID(id)
	if signature != "" && len(members) == 0 {
		members = []*contextdv1.Block{own(ofOpenAI, value(`{"provider_specific_fields":{"thought_signature":"`+signature+`"}}`))}
	}
	return append(members, &contextdv1.Block{Kind: &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{
		CallId: id, Name: name, ArgumentsJson: arguments,
	}}})
}

// writtenArguments are those of a call. Some APIs have them as a text, others as they are, and servers do not always do as
// the API that they follow.
func writtenArguments(v value) []byte {
	if len(v) > 0 && v[0] == '"' {
		return []byte(v.text())
	}
	return v
}

func result(r *contextdv1.ToolResult) *contextdv1.Block {
	r.CallId = CallID(r.CallId)
	return &contextdv1.Block{Kind: &contextdv1.Block_ToolResult{ToolResult: r}}
}

func media(m *contextdv1.Media) *contextdv1.Block {
	return &contextdv1.Block{Kind: &contextdv1.Block_Media{Media: m}}
}

// own is a provider's block as it came.
func own(provider string, v value) *contextdv1.Block {
	return &contextdv1.Block{Kind: &contextdv1.Block_Provider{Provider: &contextdv1.ProviderBlock{Provider: provider, Json: v}}}
}

// beside is a block with those members of a model's block or item that an event has no field for. It comes before the
// block that it belongs to. That the model made a call itself is not among them.
func beside(provider string, v value, names ...string) []*contextdv1.Block {
	var kept []string
	for _, name := range names {
		if given := v.get(name); given != nil && given.get("type").text() != "direct" && string(given) != "false" {
			kept = append(kept, `"`+name+`":`+string(given))
		}
	}
	if kept == nil {
		return nil
	}
	return []*contextdv1.Block{own(provider, value("{"+strings.Join(kept, ",")+"}"))}
}
