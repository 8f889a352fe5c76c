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
		inner := stored.Data
		if len(inner) == 0 {
			inner = stored.Kwargs
		}
		var members message
		if langChainRoles[kind] == "" || len(inner) == 0 || transcript.Decode(inner, &members) != nil {
			return
		}
		*m = members
	}
	m.Role = langChainRoles[strings.TrimSpace(kind)]
}
