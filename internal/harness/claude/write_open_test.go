package claude

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// TestOpenCalls: a call without a result gets one where the session goes on. The reader skips that result,
// and it is written again.
func TestOpenCalls(t *testing.T) {
	says := func(id, group string, blocks ...eventlog.Block) eventlog.Event {
		return eventlog.Event{ID: id, Body: &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: group, Blocks: blocks}}
	}
	call := func(id string) eventlog.Block { return eventlog.ToolCall{CallID: id, Name: "ls", Arguments: "{}"} }
	text := func(s string) eventlog.Block { return eventlog.Text{Text: s} }
	asks := func(id string) eventlog.Event {
		return eventlog.Event{ID: id, Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{text("Go on.")}}}
	}
	answers := func(id, call string) eventlog.Event {
		return eventlog.Event{ID: id, Body: &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{
			eventlog.ToolResult{CallID: call, Content: []eventlog.Block{text("a.go")}},
		}}}
	}
	compacts := eventlog.Event{ID: "c", Body: &eventlog.Compaction{Summary: "So far."}}
	for name, tc := range map[string]struct {
		events []eventlog.Event
		want   string // calls, results, "!" where contextd gave one, and texts
	}{
		"answered":            {[]eventlog.Event{asks("u"), says("a", "g", call("1")), answers("r", "1"), asks("v")}, "text call result text"},
		"before the user":     {[]eventlog.Event{asks("u"), says("a", "g", call("1")), asks("v")}, "text call ! text"},
		"before a reply":      {[]eventlog.Event{says("a", "g", call("1")), says("b", "h", text("Done."))}, "call ! text"},
		"in one reply":        {[]eventlog.Event{says("a", "g", call("1")), says("b", "g", call("2")), answers("r", "2"), asks("u")}, "call call result ! text"},
		"without a group":     {[]eventlog.Event{says("a", "", call("1")), says("b", "", call("2"))}, "call ! call"},
		"before a compaction": {[]eventlog.Event{says("a", "g", call("1")), compacts, asks("u")}, "call ! boundary summary text"},
		"at the end":          {[]eventlog.Event{asks("u"), says("a", "g", call("1"))}, "text call"},
		"answered late":       {[]eventlog.Event{says("a", "g", call("1")), asks("u"), answers("r", "1")}, "call text result"},
	} {
		tr := transcript.Transcript{Sessions: []transcript.Session{{Events: tc.events}}}
		for again := range 2 {
			var file bytes.Buffer
			if _, err := write(&file, tr, transcript.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
			if got := outline(file.String()); got != tc.want {
				t.Errorf("%s, written %d times: %s\n%s", name, again+1, got, file.String())
			}
			var err error
			if tr, err = read(&file); err != nil {
				t.Fatal(err)
			}
			said := fmt.Sprint(tr.Sessions[0].Events)
			messages := slices.DeleteFunc(slices.Clone(tr.Sessions[0].Events), func(e eventlog.Event) bool {
				_, custom := e.Body.(*eventlog.Custom)
				return custom
			})
			if len(messages) != len(tc.events) || len(tr.Warnings) > 0 {
				t.Errorf("%s: it reads %s with %v", name, said, tr.Warnings)
			}
		}
	}
}

func outline(file string) string {
	var parts []string
	for line := range strings.Lines(file) {
		switch {
		case strings.Contains(line, `"contextd":{"interrupted":true}`):
			parts = append(parts, "!")
		case strings.Contains(line, `"compact_boundary"`):
			parts = append(parts, "boundary")
		case strings.Contains(line, `"isCompactSummary"`):
			parts = append(parts, "summary")
		case strings.Contains(line, `"tool_use"`):
			parts = append(parts, "call")
		case strings.Contains(line, `"tool_result"`):
			parts = append(parts, "result")
		default:
			parts = append(parts, "text")
		}
	}
	return strings.Join(parts, " ")
}
