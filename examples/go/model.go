package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/contextd/contextd/client"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

const modelName = "claude-sonnet-4-5"

// model replaces the provider, with requests and responses of Anthropic's Messages API. It calls for files
// until it has seen them all, and refuses requests that the provider would refuse.
type model struct{ turns int }

func (m *model) call(request []byte) (response []byte, err error) {
	if err := wellFormed(request); err != nil {
		return nil, fmt.Errorf("400 invalid_request_error: %w", err)
	}
	m.turns++
	content := []map[string]any{{"type": "text", "text": "The flag is parsed twice; the second time wins."}}
	if m.turns <= 6 {
		content[0]["text"] = fmt.Sprintf("I read part %d.", m.turns)
		for part := range 1 + m.turns%2 {
			content = append(content, map[string]any{
				"type": "tool_use", "id": fmt.Sprintf("toolu_%d_%d", m.turns, part), "name": "read",
				"input": json.RawMessage(fmt.Sprintf(`{"path":"src/part%d.go","from":%d.0}`, m.turns, part*20)),
			})
		}
	}
	return json.Marshal(map[string]any{
		"id": fmt.Sprintf("msg_%d", m.turns), "type": "message", "role": "assistant", "model": modelName, "content": content,
	})
}

// wellFormed checks a few of the provider's rules: roles alternate, and each call is answered at once.
func wellFormed(request []byte) error {
	var body struct {
		Messages []struct {
			Role    string
			Content []struct {
				Type      string
				ID        string
				ToolUseID string `json:"tool_use_id"`
			}
		}
	}
	if err := json.Unmarshal(request, &body); err != nil {
		return err
	}
	open := map[string]bool{}
	role := "assistant"
	for i, m := range body.Messages {
		if m.Role == role || m.Role != "user" && m.Role != "assistant" {
			return fmt.Errorf("message %d: %s after %s", i, m.Role, role)
		}
		role = m.Role
		for _, item := range m.Content {
			switch item.Type {
			case "tool_use":
				open[item.ID] = true
			case "tool_result":
				if !open[item.ToolUseID] {
					return fmt.Errorf("message %d answers %q, which is not open", i, item.ToolUseID)
				}
				delete(open, item.ToolUseID)
			}
		}
		if role == "user" && len(open) > 0 {
			return fmt.Errorf("message %d leaves %d calls without a result", i, len(open))
		}
	}
	if role != "user" {
		return errors.New("the last message must be the user's")
	}
	return nil
}

// tool runs a call and returns the event with its result.
func tool(call *contextdv1.ToolCall) *contextdv1.Event {
	var args struct {
		Path string
		From float64
	}
	if err := json.Unmarshal(call.GetArgumentsJson(), &args); err != nil {
		return client.Result(call.GetCallId(), err.Error(), true)
	}
	var body strings.Builder
	for i := range 60 {
		fmt.Fprintf(&body, "%s:%d: flags.Bool(%q, false, \"what it does\")\n", args.Path, int(args.From)+i, fmt.Sprintf("flag%d", i))
	}
	return client.Result(call.GetCallId(), body.String(), false)
}
