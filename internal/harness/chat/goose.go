package chat

import (
	"slices"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// shownTo is to whom Goose shows a message. A compaction hides all messages from the model and adds a summary
// that it hides from the user.
type shownTo struct {
	User  *bool `json:"userVisible"`
	Agent *bool `json:"agentVisible"`
}

// hidden reports whether the model does not see the message.
func (m *message) hidden() bool { return m.Goose.Value.Agent != nil && !*m.Goose.Value.Agent }

// ofGoose reports whether Goose wrote a message itself: only the model sees it.
func (m *message) ofGoose() bool {
	to := m.Goose.Value
	return to.User != nil && !*to.User && to.Agent != nil && *to.Agent
}

// sumsGoose reports whether a message is the summary of a compaction: the model sees none of those before it.
func (c *conversation) sumsGoose(m *message) bool {
	return m.Role == "user" && m.ofGoose() && c.hid && len(c.staying) == 0
}

// asides are Goose's blocks for its user, which no model sees.
var asides = []string{"systemNotification", "toolConfirmationRequest", "actionRequired"}

// aside reports whether a message has only such blocks.
func (m *message) aside() bool {
	var blocks []struct {
		Type transcript.Word `json:"type"`
	}
	if m.Goose.Value.Agent == nil || transcript.Decode(m.Content, &blocks) != nil {
		return false
	}
	for _, b := range blocks {
		if !slices.Contains(asides, string(b.Type)) {
			return false
		}
	}
	return len(blocks) > 0
}
