package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// messagesBlock is parsed here without the reader of internal/harness, whose faults would otherwise go
// unnoticed.
type messagesBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Source    struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
		URL       string `json:"url"`
	} `json:"source"`
	raw json.RawMessage
}

// Turns parses a request of Anthropic's Messages API. The system prompt next to the messages is never part of
// the session.
func (claudeCLI) Turns(body []byte) ([]Turn, error) {
	var request struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	var turns []Turn
	for _, m := range request.Messages {
		blocks, err := messagesBlocks(m.Content)
		if err != nil {
			return nil, err
		}
		for i, b := range blocks {
			t, err := b.turn(m.Role)
			if err != nil {
				return nil, err
			}
			said := framed(t)
			said[0].Seam = m.Role == "user" && i+1 < len(blocks) && b.Type == "text" && blocks[i+1].Type == "text"
			turns = append(turns, said...)
		}
	}
	return turns, nil
}

// frameHeads begin the frames that Claude Code puts around words that arrived while the model worked.
var frameHeads = []string{
	"The user sent a new message while you were working:\n", "[SYSTEM NOTIFICATION - NOT USER INPUT]\n",
	"[MESSAGE FROM NON-USER SOURCE - NOT USER INPUT]\n",
}

// framed splits what Claude Code joins. Depending on the model, words that arrived meanwhile are reminders in
// a user message, several of them in one system text, or at the end of the result before them.
func framed(t Turn) []Turn {
	switch {
	case t.Kind == Result:
		parts := cutBefore(t.Body, "\n\n"+reminderTag+"\n")
		t.Body = parts[0]
		turns := []Turn{t}
		for _, p := range parts[1:] {
			turns = append(turns, Turn{Role: "user", Kind: Text, Body: p})
		}
		return turns
	case t.Kind == Text && t.Role == "system":
		var turns []Turn
		for i, p := range cutBefore("\n\n"+t.Body, "\n\n") {
			if i > 0 {
				turns = append(turns, Turn{Role: "user", Kind: Text, Body: reminderTag + "\n" + p + "\n</system-reminder>"})
			} else if p != "" {
				turns = append(turns, Turn{Role: "system", Kind: Text, Body: strings.TrimPrefix(p, "\n\n")})
			}
		}
		return turns
	}
	return []Turn{t}
}

// cutBefore cuts a text at each gap that is followed by a frame, and drops the gap's line feeds.
func cutBefore(text, gap string) (parts []string) {
	from := 0
	for at := 0; ; at++ {
		next := strings.Index(text[at:], gap)
		if next < 0 {
			return append(parts, text[from:])
		}
		at += next
		rest := text[at+len(gap):]
		if slices.ContainsFunc(frameHeads, func(head string) bool { return strings.HasPrefix(rest, head) }) {
			parts = append(parts, text[from:at])
			from = at + len("\n\n")
		}
	}
}

// messagesBlocks parses a content, which may be a string.
func messagesBlocks(raw json.RawMessage) ([]messagesBlock, error) {
	var text string
	if len(raw) == 0 {
		return nil, nil
	}
	if json.Unmarshal(raw, &text) == nil {
		return []messagesBlock{{Type: "text", Text: text}}, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	blocks := make([]messagesBlock, len(list))
	for i, one := range list {
		if err := json.Unmarshal(one, &blocks[i]); err != nil {
			return nil, err
		}
		blocks[i].raw = one
	}
	return blocks, nil
}

func (b messagesBlock) turn(role string) (Turn, error) {
	switch b.Type {
	case "text":
		return Turn{Role: role, Kind: Text, Body: b.Text}, nil
	case "thinking":
		return Turn{Role: role, Kind: Thinking, Body: b.Thinking, Signature: b.Signature}, nil
	case "redacted_thinking":
		return Turn{Role: role, Kind: Thinking, Secret: b.Data}, nil
	case "tool_use":
		return Turn{Role: role, Kind: Call, ID: b.ID, Name: b.Name, Body: sameJSON(string(b.Input))}, nil
	case "tool_result":
		content, err := messagesBlocks(b.Content)
		if err != nil {
			return Turn{}, err
		}
		var said []string
		for _, c := range content {
			part, err := c.turn(role)
			if err != nil {
				return Turn{}, err
			}
			said = append(said, part.Body)
		}
		return Turn{Kind: Result, ID: b.ToolUseID, Body: strings.Join(said, "\n"), Failed: b.IsError}, nil
	case "image", "document":
		if b.Source.Type == "url" {
			return Turn{Role: role, Kind: Media, Body: b.Source.URL}, nil
		}
		return Turn{Role: role, Kind: Media, Body: "data:" + b.Source.MediaType + ";base64," + b.Source.Data}, nil
	case "tool_reference":
		return Turn{Role: role, Kind: Other, Body: sameJSON(string(b.raw))}, nil
	}
	return Turn{}, fmt.Errorf("a block of the type %q", b.Type)
}

// sameJSON normalises JSON to what JavaScript would write after parsing it, as the CLI does.
func sameJSON(raw string) string {
	var v any
	if json.Unmarshal([]byte(raw), &v) != nil {
		return raw
	}
	again, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return string(again)
}
