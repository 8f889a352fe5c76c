package chat

import (
	"fmt"
	"strings"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// subagentRole is the prefix of the role that some programs give a subagent's messages, which they write
// among those of the main agent; the subagent's id follows.
const subagentRole = "assistant-subagent-"

// labelAgent is the id of the subagent whose session it is.
const labelAgent = Name + ".agent"

// subagent appends a message to the conversation of the subagent that its role names; false if it names none.
func (c *conversation) subagent(entry transcript.Entry, m *message) (bool, error) {
	id, ok := strings.CutPrefix(m.Role, subagentRole)
	if !ok || id == "" {
		return false, nil
	}
	switch original := string(m.Metadata.Value.Role); {
	case original == "user", original == "assistant", original == "tool", original == "system":
		m.Role = original
	case original != "":
		return false, nil
	case m.ToolCallID != "":
		m.Role = "tool"
	default:
		m.Role = "assistant"
	}
	side := c.sides[id]
	if side == nil {
		side = c.begin(id, m)
	}
	return true, side.message(entry, m)
}

// begin starts the conversation of a subagent with its first message.
func (c *conversation) begin(id string, m *message) *conversation {
	suffix := fmt.Sprintf("sidechain-%d", len(c.sides)+1)
	if c.suffix != "" {
		suffix = c.suffix + "/" + suffix
	}
	side := &conversation{out: c.out, session: c.out.Session(suffix), model: c.model}
	side.session.Label(transcript.LabelHarness, Name)
	side.session.Label(labelAgent, id)
	if c.sides == nil {
		c.sides = map[string]*conversation{}
	}
	c.sides[id] = side
	// A subagent's session can only name a call of the file's first conversation.
	if blocks, err := content.ChatBlocks(m.Content); err == nil && c.suffix == "" && m.Role == "user" {
		said, _ := first(blocks)
		side.session.SetParentCall(c.callWith(said))
	}
	return side
}

// callWith is the id of the newest call with this prompt; "" if there is none.
func (c *conversation) callWith(prompt string) (id string) {
	if prompt == "" {
		return ""
	}
	c.look()
	return c.known.prompted[prompt]
}

// known is what the first looked events of a conversation have, so that each is looked at once.
type known struct {
	looked   int
	systems  []string          // the ids of system prompts
	prompted map[string]string // the id of the newest call with a prompt, by the prompt
}

// look reads the events of the conversation that it has not read yet.
func (c *conversation) look() {
	k, all := &c.known, c.session.Since(0)
	if k.prompted == nil {
		k.prompted = map[string]string{}
	}
	for ; k.looked < len(all); k.looked++ {
		m, ok := all[k.looked].Body.(*eventlog.Message)
		if !ok {
			continue
		}
		if m.Role == eventlog.RoleSystem {
			k.systems = append(k.systems, all[k.looked].ID)
		}
		for _, call := range callsOf(m.Blocks) {
			var arguments struct {
				Prompt string `json:"prompt"`
			}
			if transcript.Decode([]byte(call.Arguments), &arguments) == nil && arguments.Prompt != "" {
				k.prompted[arguments.Prompt] = call.CallID
			}
		}
	}
}
