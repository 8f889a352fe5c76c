package harness

import (
	"encoding/json"

	"github.com/contextd/contextd/internal/harness/claude"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// SubagentOf is the harness's id of the session that began this one, where a subagent's
// transcript is a file of its own; "" if this is none, or does not say whose.
func SubagentOf(s Session) string {
	if s.Suffix != "" || !claude.Subagent(s) {
		return ""
	}
	return s.Labels[transcript.LabelSessionID]
}

// BeganBy reports whether an event of the session that SubagentOf names holds the call that
// began the subagent: the one whose prompt is the subagent's first message.
func BeganBy(subagent Session, e eventlog.Event) (callID string, ok bool) {
	m, isMessage := e.Body.(*eventlog.Message)
	prompt := firstText(subagent)
	if !isMessage || prompt == "" {
		return "", false
	}
	for _, b := range m.Blocks {
		c, isCall := b.(eventlog.ToolCall)
		if !isCall || !claude.BeginsSubagent(c.Name) {
			continue
		}
		var input struct {
			Prompt string `json:"prompt"`
		}
		if json.Unmarshal([]byte(c.Arguments), &input) == nil && input.Prompt == prompt {
			return c.CallID, true
		}
	}
	return "", false
}

// firstText is what the first message of a session says.
func firstText(s Session) string {
	for _, e := range s.Events {
		m, ok := e.Body.(*eventlog.Message)
		if !ok {
			continue
		}
		if text, ok := m.Blocks[0].(eventlog.Text); ok && m.Role == eventlog.RoleUser {
			return text.Text
		}
		return ""
	}
	return ""
}
