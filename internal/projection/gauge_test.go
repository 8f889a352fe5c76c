package projection_test

import (
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// quarter counts a token for every four bytes.
type quarter struct{}

func (quarter) Name() string { return "quarter" }

func (quarter) Count(text string) budget.Count { return budget.Count{Tokens: (len(text) + 3) / 4} }

func (quarter) Cost(text string) uint64 { return uint64(len(text)) }

func (quarter) PerToken() uint64 { return 4 }

var gauge = budget.NewAccountant(quarter{})

func text(s string) eventlog.Block { return eventlog.Text{Text: s} }

func say(role eventlog.Role, blocks ...eventlog.Block) *eventlog.Message {
	return &eventlog.Message{Role: role, Blocks: blocks}
}

func call(id string) eventlog.Block {
	return eventlog.ToolCall{CallID: id, Name: "read", Arguments: `{}`}
}

func result(id, body string) eventlog.Block {
	return eventlog.ToolResult{CallID: id, Content: []eventlog.Block{text(body)}}
}
