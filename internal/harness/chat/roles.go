package chat

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// langChainRoles maps the types of LangChain's messages to roles.
var langChainRoles = map[string]string{
	"system": "system", "human": "user", "ai": "assistant", "tool": "tool", "function": "tool",
	"SystemMessage": "system", "HumanMessage": "user", "AIMessage": "assistant", "AIMessageChunk": "assistant", "ToolMessage": "tool",
}

// ofLangChain sets the role of a LangChain message. Some programs store the message's members in an inner
// object, next to the type or to the path of the class.
func (m *message) ofLangChain(raw jsontext.Value) {
	if m.Role != "" || itemTypes[m.Type] {
		return
	}
	var stored struct {
		ID     transcript.Maybe[[]string] `json:"id"`
		Data   jsontext.Value             `json:"data"`
		Kwargs jsontext.Value             `json:"kwargs"`
	}
	kind := m.Type
	if len(m.Content) == 0 && transcript.Decode(raw, &stored) == nil {
		if class := stored.ID.Value; len(class) > 0 {
			kind = class[len(class)-1]
		}
		inner := either(stored.Data, stored.Kwargs)
		var members message
		if langChainRoles[kind] == "" || len(inner) == 0 || transcript.Decode(inner, &members) != nil {
			return
		}
		*m = members
	}
	m.Role = langChainRoles[strings.TrimSpace(kind)]
}

// shared has the members of a message in the form of ShareGPT, in place of the role and the content.
type shared struct {
	From  transcript.Word `json:"from"`
	Value jsontext.Value  `json:"value"`
}

// sharedRoles maps the authors of such messages to roles.
var sharedRoles = map[transcript.Word]string{
	"system": "system", "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "tool": "tool", "observation": "tool",
}

// ofShared sets the role and the content.
func (m *message) ofShared() {
	if role := sharedRoles[m.From]; m.Role == "" && role != "" && len(m.Content) == 0 {
		m.Role, m.Content = role, m.Value
	}
}
