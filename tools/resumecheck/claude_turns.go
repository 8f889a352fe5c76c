package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// messagesBlock is read here apart from the reader, which would hide its own faults.
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

// Turns takes them from a request of Anthropic's Messages. The system prompt next to the
// messages is never the session's.
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
			var joined []Turn
			if t.Kind == Result {
				t.Body, joined = apart(t.Body)
			} else if words, ok := unwrapped(t); ok {
				t.Role, t.Body = "user", words
			}
			t.Seam = m.Role == "user" && i+1 < len(blocks) && b.Type == "text" && blocks[i+1].Type == "text"
			turns = append(append(turns, t), joined...)
		}
	}
	return turns, nil
}

// What Claude Code puts around words that the user sent while the model worked, by version,
// and around notifications.
const (
	workingHead      = "The user sent a new message while you were working:\n"
	notificationHead = "[SYSTEM NOTIFICATION - NOT USER INPUT]\n"
)

var workingTails = []string{"\n\nThis is how Claude Code surfaces", "\n\nIMPORTANT: After completing your current task"}

// unwrapped are the words that the session has: they come as the system's, or as a reminder.
func unwrapped(t Turn) (words string, ok bool) {
	if t.Kind != Text || t.Role == "assistant" {
		return "", false
	}
	body := strings.TrimSpace(t.Body)
	if inner, reminds := strings.CutPrefix(body, reminderTag); reminds {
		body = strings.TrimSpace(strings.TrimSuffix(inner, "</system-reminder>"))
	}
	if note, ok := strings.CutPrefix(body, notificationHead); ok {
		_, words, ok = strings.Cut(note, "\n\n")
		return words, ok
	}
	words, ok = strings.CutPrefix(body, workingHead)
	for _, tail := range workingTails {
		if i := strings.LastIndex(words, tail); i >= 0 {
			words = words[:i]
		}
	}
	return words, ok
}

// apart takes from a result what Claude Code joined to it because it came next.
func apart(result string) (string, []Turn) {
	said, next, found := strings.Cut(result, "\n\n"+reminderTag+"\n")
	words, ok := unwrapped(Turn{Role: "user", Kind: Text, Body: reminderTag + next})
	if !found || !ok {
		return result, nil
	}
	return said, []Turn{{Role: "user", Kind: Text, Body: words}}
}

// messagesBlocks are those of a content that may be a string.
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

// sameJSON writes JSON so that what JavaScript takes for the same is the same: the CLI
// reads and writes it again.
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
