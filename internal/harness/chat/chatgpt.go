package chat

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// inMapping is the member in which exports of ChatGPT have a tree of messages.
const inMapping = "mapping"

// chatGPTIn recognises such a tree, whose members are named by ids.
func chatGPTIn(p transcript.Probe) bool {
	return slices.ContainsFunc(p.Records, func(record map[string]string) bool {
		for path := range record {
			if strings.HasPrefix(strings.TrimPrefix(path, "[]."), inMapping+".") && strings.HasSuffix(path, ".message.author") {
				return true
			}
		}
		return false
	})
}

// chatGPTNode is a message in the tree.
type chatGPTNode struct {
	Parent  transcript.Word `json:"parent"`
	Message jsontext.Value  `json:"message"`
}

// chatGPTMessage is a message in ChatGPT's own form.
type chatGPTMessage struct {
	ID     transcript.Word `json:"id"`
	Author transcript.Maybe[struct {
		Role transcript.Word `json:"role"`
		Name transcript.Word `json:"name"`
	}] `json:"author"`
	Created   jsontext.Value  `json:"create_time"`
	Recipient transcript.Word `json:"recipient"` // the tool that a message calls
	Content   transcript.Maybe[struct {
		Type         transcript.Word                    `json:"content_type"`
		Parts        transcript.Maybe[[]jsontext.Value] `json:"parts"`
		Text         transcript.Word                    `json:"text"`
		Result       transcript.Word                    `json:"result"`
		Profile      transcript.Word                    `json:"user_profile"`
		Instructions transcript.Word                    `json:"user_instructions"`
		Thoughts     transcript.Maybe[[]struct {
			Content transcript.Word `json:"content"`
		}] `json:"thoughts"`
	}] `json:"content"`
	Metadata transcript.Maybe[struct {
		Model transcript.Word `json:"model_slug"`
	}] `json:"metadata"`
}

// branch returns the messages of a tree from its root to a node, or to the newest message if there is no such node.
func branch(tree jsontext.Value, node string) (messages []jsontext.Value) {
	var nodes map[string]chatGPTNode
	if transcript.Decode(tree, &nodes) != nil {
		return nil
	}
	if _, ok := nodes[node]; !ok {
		node = newest(nodes)
	}
	for n, ok := nodes[node]; ok; n, ok = nodes[node] {
		delete(nodes, node)
		if len(n.Message) > 0 && n.Message[0] == '{' {
			messages = append(messages, n.Message)
		}
		node = string(n.Parent)
	}
	slices.Reverse(messages)
	return messages
}

// newest returns the node without another after it whose message is the newest.
func newest(nodes map[string]chatGPTNode) (node string) {
	followed := map[string]bool{}
	for _, n := range nodes {
		followed[string(n.Parent)] = true
	}
	var last time.Time
	for _, id := range slices.Sorted(maps.Keys(nodes)) {
		var m chatGPTMessage
		if followed[id] || transcript.Decode(nodes[id].Message, &m) != nil {
			continue
		}
		if at := parseTime(m.Created); node == "" || at.After(last) {
			node, last = id, at
		}
	}
	return node
}

// chatGPT returns a message of ChatGPT in a provider's form; none for one without content, and for a thinking, which goes
// into the next reply.
func (c *conversation) chatGPT(raw jsontext.Value) []jsontext.Value {
	var m chatGPTMessage
	if transcript.Decode(raw, &m) != nil {
		return []jsontext.Value{raw}
	}
	said, by := m.Content.Value, m.Author.Value
	for _, thought := range said.Thoughts.Value {
		c.thought.WriteString(string(thought.Content))
	}
	texts := []string{string(said.Text), string(said.Result), string(said.Profile), string(said.Instructions)}
	var parts []jsontext.Value
	for _, part := range said.Parts.Value {
		var other struct {
			Kind  transcript.Word `json:"content_type"`
			Text  transcript.Word `json:"text"`
			Asset transcript.Word `json:"asset_pointer"`
		}
		text, ok := transcript.Text(part)
		if !ok && transcript.Decode(part, &other) == nil {
			text = string(other.Text)
		}
		switch {
		case ok || text != "":
			texts = append(texts, text)
		case other.Asset != "":
			parts = append(parts, transcript.Object("type", "image_url", "image_url", string(other.Asset)))
		default:
			c.out.Skip("part " + string(other.Kind))
		}
	}
	texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" })
	for _, text := range texts {
		parts = append(parts, transcript.Object("type", "text", "text", text))
	}
	message := func(role string, more ...any) []jsontext.Value {
		return []jsontext.Value{transcript.Object(append([]any{"role", role, "timestamp", orNull(m.Created), "model", string(m.Metadata.Value.Model)}, more...)...)}
	}
	content := transcript.List(parts...)
	calls := by.Role == "assistant" && m.Recipient != "" && m.Recipient != "all"
	asked := c.called
	c.called = ""
	switch {
	case len(parts) == 0:
		c.called = asked
		if len(said.Thoughts.Value) == 0 {
			c.out.Skip("message " + string(said.Type))
		}
		return nil
	case calls:
		c.called = string(m.ID)
		arguments := strings.Join(texts, "\n")
		if !eventlog.IsJSONObject(arguments) {
			arguments = transcript.Wrap("input", arguments)
		}
		return message("assistant", "tool_calls", transcript.List(transcript.Object("id", c.called, "name", string(m.Recipient), "arguments", arguments)))
	case by.Role == "tool" && asked != "":
		return message("tool", "tool_call_id", asked, "name", string(by.Name), "content", content)
	case by.Role == "tool" || said.Profile+said.Instructions != "": // shown to the model in the user's name
		return message("user", "synthetic_reason", string(said.Type), "content", content)
	}
	return message(string(by.Role), "content", content)
}
