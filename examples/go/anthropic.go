package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// What of Anthropic's Messages API the loop uses. Content stays the bytes it came as.
type (
	messagesRequest struct {
		Model     string            `json:"model"`
		MaxTokens int               `json:"max_tokens"`
		System    []json.RawMessage `json:"system,omitempty"`
		Messages  []apiMessage      `json:"messages"`
	}
	apiMessage struct {
		Role    string            `json:"role"`
		Content []json.RawMessage `json:"content"`
	}
	messagesResponse struct {
		Model   string         `json:"model"`
		Content []contentBlock `json:"content"`
	}
	contentBlock struct {
		Type  string          `json:"type"`
		Text  string          `json:"text,omitempty"`
		ID    string          `json:"id,omitempty"`
		Name  string          `json:"name,omitempty"`
		Input json.RawMessage `json:"input,omitempty"`
	}
)

// request is the body of the provider's request for what is held. The cache marks are
// put on copies: the messages that are held are what the daemon's hashes are over.
func (h *heldContext) request(model string) (*messagesRequest, error) {
	req := &messagesRequest{Model: model, MaxTokens: 1024}
	parsed := make([]apiMessage, len(h.messages))
	for i, m := range h.messages {
		var err error
		if m.GetSystem() {
			err = json.Unmarshal(m.GetJson(), &struct {
				System *[]json.RawMessage `json:"system"`
			}{&parsed[i].Content})
		} else {
			err = json.Unmarshal(m.GetJson(), &parsed[i])
		}
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	for _, b := range h.header.GetCacheBreakpoints() {
		if err := mark(parsed, b); err != nil {
			return nil, err
		}
	}
	if len(h.messages) > 0 && h.messages[0].GetSystem() {
		req.System, parsed = parsed[0].Content, parsed[1:]
	}
	req.Messages = parsed
	return req, nil
}

// mark puts cache_control on the item that a breakpoint names, or on the last.
func mark(messages []apiMessage, b *contextdv1.CacheBreakpoint) error {
	if int(b.GetMessageIndex()) >= len(messages) {
		return fmt.Errorf("a cache mark on message %d of %d", b.GetMessageIndex(), len(messages))
	}
	content := messages[b.GetMessageIndex()].Content
	item := len(content) - 1
	if b.ContentIndex != nil {
		item = int(b.GetContentIndex())
	}
	if item < 0 || item >= len(content) {
		return fmt.Errorf("a cache mark on item %d of %d", item, len(content))
	}
	object, ok := bytes.CutSuffix(content[item], []byte("}"))
	if !ok {
		return errors.New("an item of the content is no object")
	}
	content[item] = append(bytes.Clone(object), `,"cache_control":{"type":"ephemeral"}}`...)
	return nil
}

// events are what the model said, for the log: the arguments as the bytes it wrote.
func (r *messagesResponse) event(id string) *contextdv1.Event {
	var blocks []*contextdv1.Block
	for _, c := range r.Content {
		switch c.Type {
		case "text":
			blocks = append(blocks, text(c.Text))
		case "tool_use":
			blocks = append(blocks, &contextdv1.Block{Kind: &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{
				CallId: c.ID, Name: c.Name, ArgumentsJson: c.Input,
			}}})
		}
	}
	e := said(id, contextdv1.Role_ROLE_ASSISTANT, blocks...)
	e.GetMessage().Model = r.Model
	return e
}

func (r *messagesResponse) calls() (calls []contentBlock) {
	for _, c := range r.Content {
		if c.Type == "tool_use" {
			calls = append(calls, c)
		}
	}
	return calls
}

func said(id string, role contextdv1.Role, blocks ...*contextdv1.Block) *contextdv1.Event {
	return &contextdv1.Event{EventId: id, Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{Role: role, Blocks: blocks}}}
}

func text(s string) *contextdv1.Block {
	return &contextdv1.Block{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: s}}}
}
