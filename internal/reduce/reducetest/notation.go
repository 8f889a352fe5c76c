// Package reducetest has what tests of reducers and of projection policies share: a
// notation of conversations, and the simplest possible rendering of a view.
package reducetest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// ParseEvents reads events, one a line, and numbers their ids from firstID:
//
//	system: You are an agent.
//	user (pinned): Fix the parser.
//	assistant (group=g1 model=claude at=5m): think hm | Let me look. | call c1 read {"path":"a.go"}
//	tool: c1 no such file
//	tool: c2 ok | c3! failed
//	user: result c1 late | And now?
//	user (injected): A task has ended.
//	user (standing=AGENTS.md): Run the tests.
//	custom: nothing that is rendered
//
// at is the time since an Epoch. Parts are "call ID TOOL ARGUMENTS", "think", "signed" (with a signature), "redacted"
// and "sealed" (encrypted) followed by the thought, "image", "pdf TOKENS",
// "native PROVIDER JSON" (a provider's own block), "result ID BODY" or text;
// in a tool message "ID BODY", or "ID! BODY" for a result marked as an error. A text
// is written unchanged, with \n for a line end, or as "@N WORD" for N lines with
// WORD, or "*N TEXT" for N times the text, spaced.
func ParseEvents(input string, firstID int) ([]eventlog.Event, error) {
	var events []eventlog.Event
	for line := range strings.Lines(input) {
		e, err := parseEvent(strings.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		e.ID = fmt.Sprintf("e%d", firstID+len(events))
		events = append(events, e)
	}
	return events, nil
}

var roles = map[string]eventlog.Role{
	"system": eventlog.RoleSystem, "user": eventlog.RoleUser, "assistant": eventlog.RoleAssistant, "tool": eventlog.RoleTool,
}

// Epoch is when events with the option at are counted from.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func parseEvent(line string) (eventlog.Event, error) {
	head, body, found := strings.Cut(line, ": ")
	if !found {
		return eventlog.Event{}, fmt.Errorf("has no body")
	}
	name, options, _ := strings.Cut(strings.TrimSuffix(head, ")"), " (")
	if name == "custom" {
		return eventlog.Event{Body: &eventlog.Custom{Type: body}}, nil
	}
	role, ok := roles[name]
	if !ok {
		return eventlog.Event{}, fmt.Errorf("%q is no role", name)
	}
	m := &eventlog.Message{Role: role}
	e := eventlog.Event{Body: m}
	for _, option := range strings.Fields(options) {
		switch key, value, _ := strings.Cut(option, "="); key {
		case "pinned":
			m.Pinned = true
		case "group":
			m.GroupID = value
		case "injected":
			e.Labels = map[string]string{eventlog.LabelInjected: "true"}
		case "beside":
			e.Labels = map[string]string{eventlog.LabelInjectedBlocks: value}
		case "standing":
			e.Labels = map[string]string{eventlog.LabelInjected: "true", eventlog.LabelStanding: value}
		case "model":
			m.Model = value
		case "at":
			d, err := time.ParseDuration(value)
			if err != nil {
				return eventlog.Event{}, err
			}
			e.Time = Epoch.Add(d)
		default:
			return eventlog.Event{}, fmt.Errorf("%q is no option", option)
		}
	}
	for part := range strings.SplitSeq(body, " | ") {
		if role == eventlog.RoleTool {
			part = "result " + part
		}
		m.Blocks = append(m.Blocks, parseBlock(part))
	}
	return e, nil
}

func parseBlock(part string) eventlog.Block {
	kind, rest, _ := strings.Cut(part, " ")
	first, second, _ := strings.Cut(rest, " ")
	switch kind {
	case "call":
		tool, arguments, _ := strings.Cut(second, " ")
		return eventlog.ToolCall{CallID: first, Name: tool, Arguments: arguments}
	case "result":
		id, failed := strings.CutSuffix(first, "!")
		return eventlog.ToolResult{CallID: id, Content: parseContent(second), IsError: failed}
	case "think":
		return eventlog.Thinking{Text: ParseText(rest)}
	case "signed":
		return eventlog.Thinking{Text: ParseText(rest), Signature: strings.Repeat("s", 100)}
	case "redacted":
		return eventlog.Thinking{RedactedData: ParseText(rest)}
	case "sealed":
		return eventlog.Thinking{EncryptedContent: ParseText(rest)}
	case "native":
		return eventlog.ProviderBlock{Provider: first, JSON: second}
	case "image":
		return eventlog.Media{MIMEType: "image/png", URI: rest, Tokens: 200}
	case "pdf":
		tokens, _ := strconv.ParseUint(rest, 10, 32)
		return eventlog.Media{MIMEType: "application/pdf", URI: "a.pdf", Tokens: uint32(tokens)}
	default:
		return eventlog.Text{Text: ParseText(part)}
	}
}

func parseContent(s string) []eventlog.Block {
	if s == "" {
		return nil
	}
	var content []eventlog.Block
	for part := range strings.SplitSeq(s, " + ") {
		content = append(content, parseBlock(part))
	}
	return content
}

// ParseText reads a text of the notation.
func ParseText(s string) string {
	if s == "" {
		return s
	}
	s = strings.ReplaceAll(s, `\n`, "\n")
	count, rest, _ := strings.Cut(s[1:], " ")
	n, err := strconv.Atoi(count)
	switch {
	case err != nil:
		return s
	case s[0] == '*':
		return strings.TrimSuffix(strings.Repeat(rest+" ", n), " ")
	case s[0] == '@':
		return Lines(n, rest)
	default:
		return s
	}
}

// Lines are n lines of about 24 bytes in which each names something else.
func Lines(n int, word string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s: line %d of %d", word, i+1, n)
	}
	return strings.Join(all, "\n")
}

// Text returns a text block.
func Text(s string) eventlog.Block { return eventlog.Text{Text: s} }

// Say returns a message of blocks.
func Say(role eventlog.Role, blocks ...eventlog.Block) *eventlog.Message {
	return &eventlog.Message{Role: role, Blocks: blocks}
}

// Call returns a call of a tool that reads.
func Call(id string) eventlog.Block {
	return eventlog.ToolCall{CallID: id, Name: "read", Arguments: `{}`}
}

// Result returns what a call returned.
func Result(id, body string) eventlog.Block {
	return eventlog.ToolResult{CallID: id, Content: []eventlog.Block{Text(body)}}
}
