package harness

import (
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// BoundaryOf says how the harness that wrote a compaction goes on after it: what the
// model reads is Blocks, the events that were kept, and what came since.
func BoundaryOf(c *eventlog.Compaction) Boundary {
	for _, h := range registry {
		if h.Boundary == nil {
			continue
		}
		if b, ok := h.Boundary(c); ok {
			return b
		}
	}
	if c.Summary == "" {
		return Boundary{}
	}
	return Boundary{Blocks: []eventlog.Block{eventlog.Text{Text: c.Summary}}}
}

// Seen reports whether the harness that wrote a message still shows it to a model.
func Seen(e eventlog.Event) bool {
	for i := range registry {
		if label := registry[i].LabelUnseen; label != "" && e.Labels[label] != "" {
			return false
		}
	}
	return true
}

// Left are the messages among the events, by id, that their harness shows to no model any
// more because it went on without them.
func Left(events []eventlog.Event) map[string]bool {
	for _, h := range registry {
		if h.Branches == nil {
			continue
		}
		if left := h.Branches.Left(events); left != nil {
			return left
		}
	}
	return nil
}

// Follows reports whether an event may change which messages before it are shown, its own apart:
// which are Left, or that a boundary shows what it says.
func Follows(e eventlog.Event) bool {
	for i := range registry {
		if b := registry[i].Branches; b != nil && b.Follows(e) {
			return true
		}
	}
	return e.Labels[labelSummary] == "true"
}

// SubagentOf is the harness's id of the session that began this one, where a subagent's
// transcript is a file of its own; "" if this is none, or does not say whose.
func SubagentOf(s Session) string {
	if subagents := subagentsOf(s); subagents == nil || s.Suffix != "" {
		return ""
	}
	return s.Labels[transcript.LabelSessionID]
}

// subagentsOf is how the harness of a subagent's session recognises subagents; nil if the
// session is none.
func subagentsOf(s Session) *transcript.Subagents {
	for _, h := range registry {
		if h.Subagents != nil && h.Subagents.Is(s) {
			return h.Subagents
		}
	}
	return nil
}

// BeganBy reports whether an event of the session that SubagentOf names holds the call that
// began the subagent: the one whose prompt is the subagent's first message.
func BeganBy(subagent Session, e eventlog.Event) (callID string, ok bool) {
	m, isMessage := e.Body.(*eventlog.Message)
	prompt, subagents := firstText(subagent), subagentsOf(subagent)
	if !isMessage || prompt == "" || subagents == nil {
		return "", false
	}
	for _, b := range m.Blocks {
		if c, isCall := b.(eventlog.ToolCall); isCall && subagents.Prompt(c) == prompt {
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
