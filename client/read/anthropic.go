package read

import (
	"encoding/base64"
	"fmt"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

const ofAnthropic = "anthropic"

func anthropicMessage(v value) ([]*contextdv1.Event, error) {
	if v.get("system") != nil && v.get("role") == nil {
		blocks, err := anthropicContent(v, "system")
		return []*contextdv1.Event{message(contextdv1.Role_ROLE_SYSTEM, blocks)}, err
	}
	blocks, err := anthropicContent(v, "content")
	if err != nil {
		return nil, err
	}
	switch role := v.get("role").text(); role {
	case "assistant":
		return []*contextdv1.Event{assistant(v.get("model").text(), v.get("id").text(), blocks)}, nil
	case "system":
		return []*contextdv1.Event{message(contextdv1.Role_ROLE_SYSTEM, blocks)}, nil
	case "user":
		return byResult(blocks), nil
	default:
		return nil, fmt.Errorf("role: %q is unknown", role)
	}
}

// anthropicContent are the blocks of the member with the content: a string or a list of blocks. Empty texts are left out.
func anthropicContent(of value, name string) ([]*contextdv1.Block, error) {
	if err := withContent(of, name); err != nil {
		return nil, err
	}
	v := of.get(name)
	if !v.isList() {
		return plain(v), nil
	}
	var out []*contextdv1.Block
	for i, item := range v.elements() {
		if item.get("type").text() == "tool_use" {
			members := beside(ofAnthropic, item, "caller", "toolset_name")
			out = append(out, call(members, item.get("id").text(), item.get("name").text(), writtenArguments(item.get("input")))...)
			continue
		}
		b, err := anthropicBlock(item)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", name, i, err)
		}
		if b.GetText() == nil || b.GetText().GetText() != "" {
			out = append(out, b)
		}
	}
	return out, nil
}

func plain(v value) []*contextdv1.Block {
	if v.text() == "" {
		return nil
	}
	return []*contextdv1.Block{text(v.text())}
}

func anthropicBlock(v value) (*contextdv1.Block, error) {
	switch v.get("type").text() {
	case "text":
		if len(v.get("citations").elements()) == 0 {
			return text(v.get("text").text()), nil
		}
	case "thinking":
		return thinking(&contextdv1.Thinking{Text: v.get("thinking").text(), Signature: v.get("signature").text()}), nil
	case "redacted_thinking":
		return thinking(&contextdv1.Thinking{RedactedData: []byte(v.get("data").text())}), nil
	case "tool_result":
		var content []*contextdv1.Block
		var err error
		if v.get("content") != nil {
			content, err = anthropicContent(v, "content")
		}
		return result(&contextdv1.ToolResult{
			CallId: v.get("tool_use_id").text(), Content: content, IsError: v.get("is_error").isTrue(),
		}), err
	case "image", "document":
		if m := anthropicMedia(v); m != nil {
			return media(m), nil
		}
	}
	return own(ofAnthropic, v), nil
}

// anthropicMedia is nil where a block says more than an event's media can.
func anthropicMedia(v value) *contextdv1.Media {
	for _, name := range []string{"title", "context", "citations"} {
		if v.get(name) != nil {
			return nil
		}
	}
	source := v.get("source")
	m := &contextdv1.Media{MimeType: source.get("media_type").text()}
	switch source.get("type").text() {
	case "url":
		m.Uri = source.get("url").text()
	case "base64":
		data, err := base64.StdEncoding.DecodeString(source.get("data").text())
		if err != nil {
			return nil
		}
		m.Data = data
	}
	if m.Uri == "" && len(m.Data) == 0 {
		return nil
	}
	return m
}
