package chat

import (
	"regexp"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// answered separates the results, which Cline writes as texts in a user message, from the rest of it. Such a
// text begins with the name of its call in brackets; they come in the order of the calls, before the rest. A
// message with real results has no such texts.
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

// resultHead begins the text of a result, with the name of its tool.
var resultHead = regexp.MustCompile(`^\[([a-z_]+)(?: for '(?s:.*?)')?\] Result:`)

// asksUser are the tools whose result is what the user said.
var asksUser = transcript.Tags("ask_followup_question", "plan_mode_respond")

// reported separates what tools returned to calls that the model wrote as elements of its text, as versions of Cline and
// Roo Code without calls have it, from the rest of a user message. The result is in the text with its head, or is the next.
func reported(calls string, blocks []eventlog.Block) (results, rest []eventlog.Block) {
	follows := false
	for _, b := range blocks {
		text, _ := b.(eventlog.Text)
		head, tool := "", ""
		if m := resultHead.FindStringSubmatch(text.Text); m != nil {
			head, tool = m[0], m[1]
		}
		switch {
		case tool != "" && !asksUser[tool] && strings.Contains(calls, "<"+tool+">"):
			results = append(results, b)
			follows = strings.TrimSpace(text.Text) == head
		case follows:
			results = append(results, b)
			follows = false
		default:
			rest = append(rest, b)
			follows = false
		}
	}
	return results, rest
}

// shownByCline recognises the files that Cline, and programs derived from it, write for display only.
func shownByCline(p transcript.Probe) string {
	if p.Has("[].ts", "[].type", "[].say") || p.Has("[].ts", "[].type", "[].ask") {
		return "this is what Cline shows to its user, not what its model saw: import api_conversation_history.json of the same folder"
	}
	return ""
}

// noTool begins the user message with which Cline answers a reply that calls no tool.
const noTool = "[ERROR] You did not use a tool in your previous response!"

// withoutTool reports whether a message is Cline's answer to a reply that calls no tool.
func withoutTool(blocks []eventlog.Block) bool {
	return slices.ContainsFunc(blocks, func(b eventlog.Block) bool {
		text, ok := b.(eventlog.Text)
		return ok && strings.HasPrefix(text.Text, noTool)
	})
}

// editorState begins the text with the state of the editor, which Cline adds to most user messages.
const editorState = "<environment_details>"

// ofEditor reports whether a block is that text.
func ofEditor(b eventlog.Block) bool {
	text, ok := b.(eventlog.Text)
	return ok && strings.HasPrefix(strings.TrimSpace(text.Text), editorState)
}

// additions are the beginnings of texts that Cline adds itself.
var additions = []string{editorState, "# TODO LIST", "# task_progress", noTool}

// surroundings reports whether Cline added all blocks itself.
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
