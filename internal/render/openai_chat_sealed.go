package render

import (
	"encoding/json"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// chatSeal is reasoning that a host of models sealed: the lists in which its message had it, which must come back as they
// were, as members with a comma before each.
type chatSeal struct {
	block   int // -1 if there is none
	members []byte
}

// sealOf finds the seal of a message. It is not sent where reasoning is returned as text, to a model of another maker, who
// refuses it, nor where the message has several, which no response had together.
func sealOf(m *Message) chatSeal {
	none := chatSeal{block: -1}
	found := none
	for i, block := range m.Blocks {
		t, ok := block.(eventlog.Thinking)
		if !ok || provider.OfBlock(t, "") != provider.Host {
			continue
		}
		members, ok := hostedLists(t.Signature)
		if !ok || found.block >= 0 || m.Unreasoned || m.ReturnReasoning || provider.OtherMaker(m.Asked, m.Model) {
			return none
		}
		found = chatSeal{i, renamedIn(m, members)}
	}
	return found
}

// hostedLists are the members of a signature that holds a host's lists. Their elements are of types that a host knows, and
// else as they came.
func hostedLists(signature string) ([]byte, bool) {
	lists, ok := members(signature, nil, []string{"reasoning_details", "thinking_blocks"})
	if _, mended := wholePairs(signature); !ok || mended {
		return nil, false
	}
	for name, raw := range lists {
		var list []map[string]json.RawMessage
		if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
			return nil, false
		}
		for _, e := range list {
			kind := textIn(e["type"])
			if name == "thinking_blocks" && kind != "thinking" && kind != "redacted_thinking" || name == "reasoning_details" && !strings.HasPrefix(kind, "reasoning.") {
				return nil, false
			}
		}
	}
	object := appendRaw([]byte{}, signature)
	object[0] = ','
	return object[:len(object)-1], true
}

// renamedIn gives the ids of calls that are renamed their new names in a host's lists, by which it finds the call that a
// detail belongs to. What is sealed has no such id.
func renamedIn(m *Message, lists []byte) []byte {
	var names map[string]string // as JSON
	for i, block := range m.Blocks {
		call, ok := block.(eventlog.ToolCall)
		if !ok {
			continue
		}
		if id := m.callID(i, call.CallID); id != call.CallID {
			if names == nil {
				names = map[string]string{}
			}
			names[string(appendString(nil, call.CallID))] = string(appendString(nil, id))
		}
	}
	if names == nil {
		return lists
	}
	const member = `"id":"` // which no string contains, as its quotes would have escapes
	out, rest := make([]byte, 0, len(lists)), string(lists)
	for {
		at := strings.Index(rest, member)
		if at < 0 {
			return append(out, rest...)
		}
		at += len(member) - 1
		end := stringEnd(rest, at)
		id := rest[at:end]
		if name, ok := names[id]; ok {
			id = name
		}
		out, rest = append(append(out, rest[:at]...), id...), rest[end:]
	}
}

// google takes the signature of a call that Google's own endpoint of Chat Completions gave; "" if none is held.
func (h *beside) google() string {
	var of struct {
		Google struct {
			Signature string `json:"thought_signature"`
		} `json:"google"`
	}
	if json.Unmarshal(h.members["extra_content"], &of) != nil || !signatureBytes(of.Google.Signature) {
		return ""
	}
	delete(h.members, "extra_content")
	return of.Google.Signature
}

// chatCallMember reports whether a member of a call can be sent with it.
func chatCallMember(m *Message, value string) bool {
	_, mended := wholePairs(value)
	return eventlog.IsJSONObject(value) && !mended && !provider.OtherMaker(m.Asked, m.Model)
}
