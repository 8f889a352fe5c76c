package projection_test

import (
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

var gauge = reducetest.Gauge

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
