package assemble_test

import (
	"fmt"
	"testing"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/reduce"
)

// BenchmarkDistinct measures the first assembly of sessions in which no event has a name of another: four
// times the events should take four times as long.
func BenchmarkDistinct(b *testing.B) {
	req := assemble.Request{
		SessionID: "s",
		Budget:    budget.Spec{MaxTokens: 8_000, Tokenizer: budget.TokenizerO200K},
		Policy:    assemble.Policy{Reduction: reduce.DefaultPolicy()},
	}
	for kind, events := range map[string]func(id, text string) []eventlog.Event{
		"calls": func(id, text string) []eventlog.Event {
			return []eventlog.Event{
				logtest.Message(id, eventlog.RoleAssistant, eventlog.ToolCall{CallID: id, Name: "write_file", Arguments: fmt.Sprintf(`{"path":"%s.go","content":%q}`, id, text)}),
				logtest.Message("of "+id, eventlog.RoleTool, eventlog.ToolResult{CallID: id, Content: []eventlog.Block{eventlog.Text{Text: "ok"}}}),
			}
		},
		"failures": func(id, text string) []eventlog.Event {
			return []eventlog.Event{
				logtest.Message(id, eventlog.RoleAssistant, eventlog.ToolCall{CallID: id, Name: "bash", Arguments: fmt.Sprintf(`{"command":"make %s"}`, id)}),
				logtest.Message("of "+id, eventlog.RoleTool, eventlog.ToolResult{CallID: id, Content: []eventlog.Block{eventlog.Text{Text: "error: " + text}}, IsError: true}),
			}
		},
		"parts of a turn": func(id, text string) []eventlog.Event {
			call := logtest.Message(id, eventlog.RoleAssistant, eventlog.ToolCall{CallID: id, Name: "read_file", Arguments: fmt.Sprintf(`{"path":"%s.go"}`, id)})
			call.Body.(*eventlog.Message).GroupID = "turn"
			return []eventlog.Event{call, logtest.Message("of "+id, eventlog.RoleTool, eventlog.ToolResult{CallID: id, Content: []eventlog.Block{eventlog.Text{Text: text}}})}
		},
		"edits of a file": func(id, text string) []eventlog.Event {
			return []eventlog.Event{
				logtest.Message(id, eventlog.RoleAssistant, eventlog.ToolCall{CallID: id, Name: "edit", Arguments: fmt.Sprintf(`{"path":"a.go","old_str":"was %s","new_str":%q}`, id, text)}),
				logtest.Message("of "+id, eventlog.RoleTool, eventlog.ToolResult{CallID: id, Content: []eventlog.Block{eventlog.Text{Text: "ok"}}}),
			}
		},
		"standing": func(id, text string) []eventlog.Event {
			note := logtest.Message(id, eventlog.RoleUser, eventlog.Text{Text: text})
			note.Labels = map[string]string{eventlog.LabelInjected: "true", eventlog.LabelStanding: id}
			return []eventlog.Event{note}
		},
	} {
		for _, n := range []int{10_000, 40_000} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				store := memlog.New()
				push(b, store, "s", logtest.Say("begin"))
				for i := range n {
					push(b, store, "s", events(fmt.Sprint("n", i), fmt.Sprintf("I changed handleRequest%d, see parseConfig_%d and ERR_CODE_%d.", i, i, i))...)
				}
				for b.Loop() {
					mustAssemble(b, newEngine(b, store), req)
				}
			})
		}
	}
}
