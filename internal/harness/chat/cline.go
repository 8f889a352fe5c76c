package chat

import (
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// answered takes the texts out of a user's message in which Cline answers calls: such a text
// begins with the name of its call in brackets. They come in the order of the calls, before
// what else the message says. There are none beside results that are no texts.
func answered(calls []eventlog.ToolCall, blocks []eventlog.Block) (results, rest []eventlog.Block) {
	if slices.ContainsFunc(blocks, func(b eventlog.Block) bool { _, ok := b.(eventlog.ToolResult); return ok }) {
		return nil, blocks
	}
	for _, b := range blocks {
		text, ok := b.(eventlog.Text)
		if !ok || len(calls) == 0 {
			rest = append(rest, b)
			continue
		}
		name := calls[0].Name
		if name == "use_subagents" {
			name = "subagents"
		}
		after, isResult := strings.CutPrefix(text.Text, "["+name)
		isResult = isResult && (strings.HasPrefix(after, "] Result:") || strings.HasPrefix(after, " for '") && strings.Contains(after, "'] Result:"))
		refused := strings.HasPrefix(text.Text, "Tool ["+calls[0].Name+"] was not executed")
		if !isResult && !refused {
			rest = append(rest, b)
			continue
		}
		results = append(results, eventlog.ToolResult{CallID: calls[0].CallID, IsError: refused, Content: []eventlog.Block{text}})
		calls = calls[1:]
	}
	return results, rest
}

// shownByCline recognises what Cline, and those that come from it, show to their user.
func shownByCline(p transcript.Probe) string {
	if p.Has("[].ts", "[].type", "[].say") || p.Has("[].ts", "[].type", "[].ask") {
		return "this is what Cline shows to its user, not what its model saw: import api_conversation_history.json of the same folder"
	}
	return ""
}

// noTool is how Cline answers a reply that calls no tool, in the user's name.
const noTool = "[ERROR] You did not use a tool in your previous response!"

// withoutTool reports whether Cline answers a reply that calls no tool.
func withoutTool(blocks []eventlog.Block) bool {
	return slices.ContainsFunc(blocks, func(b eventlog.Block) bool {
		text, ok := b.(eventlog.Text)
		return ok && strings.HasPrefix(text.Text, noTool)
	})
}

// additions are how the texts begin that Cline says itself.
var additions = []string{"<environment_details>", "# TODO LIST", "# task_progress", noTool}

// surroundings reports whether what Cline says itself is all that there is.
func surroundings(blocks []eventlog.Block) bool {
	for _, b := range blocks {
		text, ok := b.(eventlog.Text)
		if !ok {
			return false
		}
		begin := strings.TrimSpace(text.Text)
		if !slices.ContainsFunc(additions, func(a string) bool { return strings.HasPrefix(begin, a) }) {
			return false
		}
	}
	return true
}

// callsOf are the calls among the blocks that have ids.
func callsOf(blocks []eventlog.Block) (calls []eventlog.ToolCall) {
	for _, b := range blocks {
		if call, ok := b.(eventlog.ToolCall); ok && call.CallID != "" {
			calls = append(calls, call)
		}
	}
	return calls
}
