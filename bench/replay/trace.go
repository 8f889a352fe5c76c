package main

import (
	"fmt"
	"strings"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/evaluate"
	eventlog "github.com/contextd/contextd/internal/log"
)

// syntheticTrace is a trace by which other projects compared their policies: 60 tool steps of about 4 KB each
// after one user message.
func syntheticTrace() []eventlog.Event {
	const steps, bodyBytes = 60, 4096
	message := func(id string, role eventlog.Role, b eventlog.Block) eventlog.Event {
		return eventlog.Event{ID: id, Body: &eventlog.Message{Role: role, Blocks: []eventlog.Block{b}}}
	}
	events := []eventlog.Event{
		message("system", eventlog.RoleSystem, eventlog.Text{Text: "You are a careful software engineer. Use the tools."}),
		message("user", eventlog.RoleUser, eventlog.Text{Text: "Find out why the nightly build fails and fix it."}),
	}
	for i := range steps {
		id := fmt.Sprintf("call_%02d", i)
		var body strings.Builder
		for line := 1; body.Len() < bodyBytes; line++ {
			fmt.Fprintf(&body, "%4d\tresult := process(step%dInput, %d) // part %d of the module\n", line, i, line*7, line%9)
		}
		events = append(events,
			message(id+"-call", eventlog.RoleAssistant, eventlog.ToolCall{CallID: id, Name: "read_file", Arguments: fmt.Sprintf(`{"path":"src/module_%02d.go"}`, i)}),
			message(id+"-result", eventlog.RoleTool, eventlog.ToolResult{CallID: id, ToolName: "read_file", Content: []eventlog.Block{eventlog.Text{Text: body.String()}}}))
	}
	// The model's 60th request comes after the last result.
	return append(events, message("end", eventlog.RoleAssistant, eventlog.Text{Text: "Fixed."}))
}

func traceSession(gauge budget.Gauge) (*evaluate.Session, error) {
	_, admitted, err := eventlog.Head{}.Admit(syntheticTrace())
	if err != nil {
		return nil, err
	}
	return evaluate.NewSession("synthetic trace", "trace", admitted, gauge), nil
}
