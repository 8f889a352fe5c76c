package reduce_test

import (
	"fmt"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// longSession is an agent at work: turns of a call and a result of about 3 KiB, and
// every tenth turn a word of the user. Every eighth turn repeats an older read.
func longSession(events int) []eventlog.Event {
	message := func(role eventlog.Role, blocks ...eventlog.Block) eventlog.Event {
		return eventlog.Event{Body: &eventlog.Message{Role: role, Blocks: blocks}}
	}
	all := []eventlog.Event{message(eventlog.RoleSystem, eventlog.Text{Text: "You are a coding agent."})}
	for turn := 0; len(all) < events; turn++ {
		if turn%10 == 0 {
			all = append(all, message(eventlog.RoleUser, eventlog.Text{Text: "Go on with the next ones, please."}))
		}
		id, file := fmt.Sprintf("call_%d", turn), turn
		if turn%8 == 0 {
			file = turn / 2
		}
		all = append(all,
			message(eventlog.RoleAssistant,
				eventlog.Text{Text: "I look at the next module."},
				eventlog.ToolCall{CallID: id, Name: "read_file", Arguments: fmt.Sprintf(`{"path":"pkg/mod%d/handler.go"}`, file)}),
			message(eventlog.RoleTool, eventlog.ToolResult{CallID: id, Content: []eventlog.Block{
				eventlog.Text{Text: reducetest.Lines(80, fmt.Sprintf("pkg/mod%d/handler.go", file))},
			}}))
	}
	_, admitted, err := eventlog.Head{}.Admit(all)
	if err != nil {
		panic(err)
	}
	for i := range admitted {
		admitted[i].Tokens = gauge.CountEvent(admitted[i])
	}
	return admitted
}

// BenchmarkPipeline measures the reduction of a session of so many events to 32k
// tokens: cold, with its groups gathered from the log, and warm, after each further
// turn, from the state of the turn before.
func BenchmarkPipeline(b *testing.B) {
	policy, target := reduce.DefaultPolicy(), budget.Budget{Target: 32_000}
	for _, events := range []int{1_000, 10_000, 100_000} {
		log := longSession(events)
		b.Run(fmt.Sprintf("%d/cold", events), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				conv := reduce.NewConversation(gauge)
				for _, e := range log {
					conv.Append(e)
				}
				if _, err := reduce.NewPipeline(policy, conv).Run(target, reduce.State{}, reduce.Ask{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%d/warm", events), func(b *testing.B) {
			b.ReportAllocs()
			const steps = 200 // turns that are reduced one by one, after the others
			var conv *reduce.Conversation
			var state reduce.State
			next := len(log)
			for b.Loop() {
				if next == len(log) {
					b.StopTimer()
					conv, next = reduce.NewConversation(gauge), len(log)-steps
					for _, e := range log[:next] {
						conv.Append(e)
					}
					r, err := reduce.NewPipeline(policy, conv).Run(target, reduce.State{}, reduce.Ask{})
					if err != nil {
						b.Fatal(err)
					}
					state = r.State
					b.StartTimer()
				}
				conv.Append(log[next])
				next++
				r, err := reduce.NewPipeline(policy, conv).Run(target, state, reduce.Ask{})
				if err != nil {
					b.Fatal(err)
				}
				state = r.State
			}
		})
	}
}
