package chat

import (
	"cmp"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// printed is a line that is no message: of Cursor's agent with --output-format stream-json, or of `codex exec --json`.
type printed struct {
	Type     transcript.Word                          `json:"type"`
	Subtype  transcript.Word                          `json:"subtype"`
	At       jsontext.Value                           `json:"timestamp_ms"`
	CallID   transcript.Word                          `json:"call_id"`
	Text     transcript.Word                          `json:"text"` // of a thinking
	ToolCall transcript.Maybe[map[string]printedCall] `json:"tool_call"`
	// Of Codex.
	ThreadID transcript.Word            `json:"thread_id"`
	Item     transcript.Maybe[execItem] `json:"item"`
}

// printedCall is a call, under the name of its tool.
type printedCall struct {
	Args   jsontext.Value                              `json:"args"`
	Result transcript.Maybe[map[string]jsontext.Value] `json:"result"` // under the name of its outcome
	// Of a tool without a name of its own.
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
}

// printedLine returns the messages of such a line; none for a piece of a thinking, which goes into the next reply.
func (c *conversation) printedLine(p *printed) (all []jsontext.Value, ok bool) {
	if execLine(string(p.Type)) {
		return c.execMessages(p), true
	}
	if p.Type == "thinking" && p.Subtype != "" {
		c.thought.WriteString(string(p.Text))
		return nil, true
	}
	if p.Type != "tool_call" || p.CallID == "" || len(p.ToolCall.Value) != 1 {
		return nil, false
	}
	for name, call := range p.ToolCall.Value {
		if !c.session.Called(string(p.CallID)) {
			block := transcript.Object("id", string(p.CallID), "name", cmp.Or(call.Name, name), "arguments", orEmpty(either(call.Args, call.Arguments)))
			all = append(all, transcript.Object("role", "assistant", "tool_calls", transcript.List(block), "timestamp", orNull(p.At)))
		}
		for _, outcome := range slices.Sorted(maps.Keys(call.Result.Value)) {
			given := call.Result.Value[outcome]
			var said struct {
				Content jsontext.Value `json:"content"`
			}
			if transcript.Decode(given, &said) == nil {
				if _, isText := transcript.Text(said.Content); isText {
					given = said.Content
				}
			}
			all = append(all, transcript.Object("role", "user", "content", transcript.List(result(string(p.CallID), given, nil, outcome != "success")), "timestamp", orNull(p.At)))
		}
	}
	return all, true
}

// reflects puts the thinking that was printed before a reply into it.
func (c *conversation) reflects(blocks []eventlog.Block) []eventlog.Block {
	if c.thought.Len() == 0 {
		return blocks
	}
	thought := eventlog.Thinking{Text: c.thought.String()}
	c.thought.Reset()
	return append([]eventlog.Block{thought}, blocks...)
}
