package projection_test

import (
	"fmt"
	"strconv"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
)

// The notation of events in scripts, one a line:
//
//	system: You are an agent.
//	user (pinned): Fix the parser.
//	assistant (group=g1 model=claude): think hm | Let me look. | call c1 read {"path":"a.go"}
//	tool: c1 no such file
//	tool: c2 ok | c3! failed
//	user: result c1 late | And now?
//	custom: nothing that is rendered
//
// Parts are "call ID TOOL ARGUMENTS", "think", "signed" (with a signature), "redacted"
// and "sealed" (encrypted) followed by the thought, "image", "result ID BODY" or text;
// in a tool message "ID BODY", or "ID! BODY" for a result marked as an error. A text
// is written as it stands, with \n for a line end, or as "@N WORD" for N lines with
// WORD, or "*N TEXT" for N times the text, spaced.
func parseEvents(input string, firstID int) ([]eventlog.Event, error) {
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
	for _, option := range strings.Fields(options) {
		switch key, value, _ := strings.Cut(option, "="); key {
		case "pinned":
			m.Pinned = true
		case "group":
			m.GroupID = value
		case "model":
			m.Model = value
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
	return eventlog.Event{Body: m}, nil
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
		return eventlog.Thinking{Text: parseText(rest)}
	case "signed":
		return eventlog.Thinking{Text: parseText(rest), Signature: strings.Repeat("s", 100)}
	case "redacted":
		return eventlog.Thinking{RedactedData: parseText(rest)}
	case "sealed":
		return eventlog.Thinking{EncryptedContent: parseText(rest)}
	case "image":
		return eventlog.Media{MIMEType: "image/png", URI: rest, Tokens: 200}
	default:
		return eventlog.Text{Text: parseText(part)}
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

func parseText(s string) string {
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
		return lines(n, rest)
	default:
		return s
	}
}

// lines are n lines of about 24 bytes in which each names something else.
func lines(n int, word string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s: line %d of %d", word, i+1, n)
	}
	return strings.Join(all, "\n")
}

// parsePolicy reads the name of a policy and a line for each of its options, such as
// "keep_last 3"; those that are lists may come several times.
func parsePolicy(input string) (projection.Options, error) {
	var o projection.Options
	number := func(s string) *uint32 {
		n, _ := strconv.ParseUint(s, 10, 32)
		out := uint32(n)
		return &out
	}
	for line := range strings.Lines(input) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch key {
		case "ignore_signatures":
			o.IgnoreSignatures = true
		case "raw_fallback":
			o.RawFallback = true
		case "clear_at_least":
			o.ClearAtLeastTokens = number(value)
		case "keep_last":
			o.KeepLast = *number(value)
		case "summary":
			o.Summary = parseText(value)
		case "root_window":
			o.RootWindow = number(value)
		case "min_chars":
			o.MinChars = number(value)
		case "root":
			o.Roots = append(o.Roots, value)
		case "active_plan":
			o.ActivePlan = value
		case "scratchpad":
			o.Scratchpad = value
		case "pending_tool_args":
			o.PendingToolArgs = append(o.PendingToolArgs, value)
		case "unresolved_finding":
			o.UnresolvedFindings = append(o.UnresolvedFindings, value)
		case "require_write_barrier":
			o.RequireWriteBarrier = true
		case "write_barrier_ref":
			o.WriteBarrierRefs = append(o.WriteBarrierRefs, value)
		case "expression":
			o.Expression = value
		default:
			if o.Name != "" {
				return o, fmt.Errorf("%q is no option", key)
			}
			o.Name = key
		}
	}
	return o, nil
}
