package chat

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// shared has the members of a message in the form of ShareGPT, in place of the role and the content.
type shared struct {
	From  transcript.Word `json:"from"`
	Value jsontext.Value  `json:"value"`
}

// sharedRoles maps the authors of such messages to roles.
var sharedRoles = map[transcript.Word]string{
	"system": "system", "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "tool": "tool", "observation": "tool",
}

// sharedIn recognises conversations of such messages, or of messages with roles under the same name or in a state.
func sharedIn(p transcript.Probe) bool {
	for _, at := range []string{inShared + "[].", "[]." + inShared + "[].", "values." + inMessages + "[].", "outputs." + inMessages + "[]."} {
		if p.Has(at+"from", at+"value") || p.Has(at+"role", at+"content") {
			return true
		}
	}
	return false
}

// ofShared sets the role and the content.
func (m *message) ofShared() {
	if role := sharedRoles[m.From]; m.Role == "" && role != "" && len(m.Content) == 0 {
		m.Role, m.Content = role, m.Value
	}
}
