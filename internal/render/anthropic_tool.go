package render

import (
	"encoding/json"

	eventlog "github.com/contextd/contextd/internal/log"
)

// emptyFailure is the content of a failed result that has none: Anthropic wants to know
// what went wrong.
const emptyFailure = "[no output]"

func anthropicCall(c *content, i int, call eventlog.ToolCall) []byte {
	o := object{dst: []byte{'{'}}
	o.always("type", "tool_use")
	o.always("id", c.callID(i, call.CallID))
	o.always("name", c.toolName(i, call.Name, longestAnthropicName, wordByte))
	o.name("input")
	o.dst = c.arguments(o.dst, i, call.Arguments, anthropicDecoder)
	c.beside.take(&o, providerAnthropic, "caller", func(caller string) bool {
		id, ok := anthropicCaller(caller)
		return ok && (id == "" || c.across[id])
	})
	c.beside.take(&o, providerAnthropic, "toolset_name", func(raw string) bool {
		name := textIn(json.RawMessage(raw))
		return name != "" && len(name) <= longestAnthropicName && allOf(name, wordByte)
	})
	return append(o.dst, '}')
}

// anthropicCaller reads who made a call: the use of a server tool with an id, or the model itself.
func anthropicCaller(raw string) (id string, ok bool) {
	m, ok := members(raw, []string{"type"}, []string{"tool_id"})
	id = textIn(m["tool_id"])
	switch textIn(m["type"]) {
	case "direct":
		return "", ok && m["tool_id"] == nil
	case "code_execution_20250825", "code_execution_20260120":
		return id, ok && serverID(id, "srvtoolu_")
	}
	return "", false
}

// toolName is the name of a tool in the provider's format.
func (c *content) toolName(i int, name string, longest int, taken func(int, byte) bool) string {
	mapped := wireName(name, longest, taken)
	if mapped != name {
		c.converted(i, Renamed, "tool "+brief(name))
	}
	return mapped
}

// anthropicResult is a tool's result. What failed has texts alone, at least one.
func anthropicResult(c *content, i int, r eventlog.ToolResult) []byte {
	inner := &content{message: c.message, citing: c.citing}
	for _, block := range r.Content {
		switch b := block.(type) {
		case eventlog.Text:
			if inner.shown(i, b.Text) {
				inner.add(said, i, anthropicTextItem(b.Text))
			}
		case eventlog.Media:
			if r.IsError {
				inner.add(said, i, anthropicTextItem(inner.describe(i, describeMedia(b))))
			} else {
				inner.add(said, i, anthropicMediaItem(inner, i, b))
			}
		case eventlog.ProviderBlock:
			types := anthropicResultTypes
			if r.IsError {
				types = anthropicTextTypes
			}
			inner.add(said, i, anthropicNativeItem(inner, i, b, readBlock(b, types)))
		default:
			inner.add(said, i, anthropicTextItem(inner.describe(i, "tool block")))
		}
	}
	if r.IsError && len(inner.items) == 0 {
		inner.add(said, i, anthropicTextItem(emptyFailure))
	}
	json := inner.json()
	o := begin(len(json))
	o.always("type", "tool_result")
	o.always("tool_use_id", c.message.callID(i, r.CallID))
	if len(inner.items) > 0 {
		o.name("content")
		o.dst = append(append(append(o.dst, '['), json...), ']')
	}
	if r.IsError {
		o.raw("is_error", "true")
	}
	c.conversions = append(c.conversions, inner.conversions...)
	return append(o.dst, '}')
}
