package transport

import (
	"strings"

	"google.golang.org/protobuf/proto"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// plainlyValid is a fast path of validation for common appends. If it returns true, the request is valid by the API's
// rules; if it returns false, these must be checked. A test checks that the rules accept what it accepts.
func plainlyValid(m proto.Message) bool {
	switch m := m.(type) {
	case *contextdv1.AppendEventsRequest:
		return plainAppend(m)
	case *contextdv1.AppendEventStreamRequest:
		return m.GetAppend() != nil && plainAppend(m.GetAppend())
	default:
		return false
	}
}

func plainAppend(m *contextdv1.AppendEventsRequest) bool {
	if !plainSessionID(m.GetSessionId()) || len(m.GetEvents()) == 0 || m.GetKnown() != nil && !plainMark(m.GetKnown()) {
		return false
	}
	for _, e := range m.GetEvents() {
		if !plainEventID(e.GetEventId()) || len(e.GetLabels()) > 0 || e.GetMessage() == nil || !plainMessage(e.GetMessage()) {
			return false
		}
	}
	return true
}

func plainMark(m *contextdv1.LogMark) bool {
	if of := m.GetIncarnation(); of == "" || len(of) > 64 {
		return false
	}
	hash, ok := strings.CutPrefix(m.GetChainHead(), "sha256:")
	return m.GetChainHead() == "" || ok && len(hash) == 64 && strings.Trim(hash, "0123456789abcdef") == ""
}

// plainSessionID accepts segments joined by single slashes.
func plainSessionID(id string) bool {
	if len(id) > 256 {
		return false
	}
	begins := true // a segment begins here
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_':
			begins = false
		case begins:
			return false
		case c == '/':
			begins = true
		case c == '.', c == ':', c == '@', c == '-':
		default:
			return false
		}
	}
	return !begins
}

func plainEventID(id string) bool {
	if len(id) > 256 {
		return false
	}
	for i := range len(id) {
		if id[i] < 0x20 || id[i] == 0x7f {
			return false
		}
	}
	return true
}

func plainMessage(m *contextdv1.Message) bool {
	// The limits are in characters; a text has no more characters than bytes.
	if m.GetRole() < contextdv1.Role_ROLE_SYSTEM || m.GetRole() > contextdv1.Role_ROLE_TOOL ||
		len(m.GetGroupId()) > 256 || len(m.GetModel()) > 256 || len(m.GetBlocks()) == 0 {
		return false
	}
	for _, b := range m.GetBlocks() {
		if !plainBlock(b) {
			return false
		}
	}
	return true
}

func plainBlock(b *contextdv1.Block) bool {
	switch k := b.GetKind().(type) {
	case *contextdv1.Block_Text:
		return k.Text.GetText() != ""
	case *contextdv1.Block_Thinking:
		return k.Thinking.GetText() != ""
	case *contextdv1.Block_ToolCall:
		return plainName(k.ToolCall.GetCallId()) && plainName(k.ToolCall.GetName())
	case *contextdv1.Block_ToolResult:
		if !plainName(k.ToolResult.GetCallId()) || len(k.ToolResult.GetToolName()) > 512 {
			return false
		}
		for _, c := range k.ToolResult.GetContent() {
			if c.GetText() == nil {
				return false
			}
		}
		return true
	default:
		return false
	}
}

func plainName(s string) bool { return len(s) > 0 && len(s) <= 512 }
