package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

const modelName = "claude-sonnet-4-5"

// model replaces the provider: it reads files until it has seen them all. It refuses
// what the provider would.
type model struct{ turns int }

func (m *model) call(req *messagesRequest) (*messagesResponse, error) {
	if err := wellFormed(req); err != nil {
		return nil, fmt.Errorf("400 invalid_request_error: %w", err)
	}
	m.turns++
	resp := &messagesResponse{Model: modelName}
	if m.turns > 6 {
		resp.Content = []contentBlock{{Type: "text", Text: "The flag is parsed twice; the second time wins."}}
		return resp, nil
	}
	resp.Content = []contentBlock{{Type: "text", Text: fmt.Sprintf("I read part %d.", m.turns)}}
	for part := range 1 + m.turns%2 {
		resp.Content = append(resp.Content, contentBlock{
			Type: "tool_use", ID: fmt.Sprintf("toolu_%d_%d", m.turns, part), Name: "read",
			Input: json.RawMessage(fmt.Sprintf(`{"path": "src/part%d.go", "from": %d.0}`, m.turns, part*20)),
		})
	}
	return resp, nil
}

// wellFormed is a small part of the provider's rules: roles alternate, and each call is
// answered at once.
func wellFormed(req *messagesRequest) error {
	open := map[string]bool{}
	role := "assistant"
	for i, m := range req.Messages {
		if m.Role == role || m.Role != "user" && m.Role != "assistant" {
			return fmt.Errorf("message %d: %s after %s", i, m.Role, role)
		}
		role = m.Role
		for _, raw := range m.Content {
			var item struct {
				Type      string `json:"type"`
				ID        string `json:"id"`
				ToolUseID string `json:"tool_use_id"`
			}
			if err := json.Unmarshal(raw, &item); err != nil {
				return err
			}
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

// tool answers a call: the result's event, for the log.
func tool(call contentBlock) *contextdv1.Event {
	var args struct {
		Path string  `json:"path"`
		From float64 `json:"from"`
	}
	result := &contextdv1.ToolResult{CallId: call.ID}
	if err := json.Unmarshal(call.Input, &args); err != nil {
		result.IsError, result.Content = true, []*contextdv1.Block{text(err.Error())}
	} else {
		var body strings.Builder
		for i := range 20 {
			fmt.Fprintf(&body, "%s:%d: flags.Bool(%q, false, \"what it does\")\n", args.Path, int(args.From)+i, fmt.Sprintf("flag%d", i))
		}
		result.Content = []*contextdv1.Block{text(body.String())}
	}
	return said("result-"+call.ID, contextdv1.Role_ROLE_TOOL, &contextdv1.Block{Kind: &contextdv1.Block_ToolResult{ToolResult: result}})
}
