package projection_test

import (
	"fmt"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// longSession is an agent at work: so many turns of a call and a result of about 2 KiB,
// of which every fifth fails and is repaired two turns later.
func longSession(turns int) *reduce.Conversation {
	c := newSession()
	message := func(role eventlog.Role, blocks ...eventlog.Block) {
		if err := c.append(eventlog.Event{ID: fmt.Sprint(c.head.Seq), Body: reducetest.Say(role, blocks...)}); err != nil {
			panic(err)
		}
	}
	message(eventlog.RoleUser, reducetest.Text("Go through all modules, please."))
	for turn := range turns {
		id, file := fmt.Sprintf("call_%d", turn), turn
		if turn%5 == 2 {
			file = turn - 2
		}
		arguments := fmt.Sprintf(`{"path":"pkg/mod%d/handler.go","limit":200}`, file)
		message(eventlog.RoleAssistant, eventlog.ToolCall{CallID: id, Name: "read_file", Arguments: arguments})
		message(eventlog.RoleTool, eventlog.ToolResult{
			CallID: id, IsError: turn%5 == 0,
			Content: []eventlog.Block{reducetest.Text(strings.Repeat("func handle(w http.ResponseWriter)\n", 60))},
		})
	}
	return c.conv
}

// BenchmarkPolicies measures a policy on 2,000 groups that reduction left alone.
func BenchmarkPolicies(b *testing.B) {
	conv := longSession(2000)
	view := reduce.NewView(gauge, conv.Groups())
	for _, o := range []projection.Options{
		{Name: projection.CleanToolRepair},
		{Name: projection.SquashFailed},
		{Name: projection.SummaryPrefix, Summary: strings.Repeat("What was said. ", 50)},
	} {
		b.Run(o.Name, func(b *testing.B) {
			policy, err := projection.New(o)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if got := policy.Apply(view, conv.Turns(), projection.State{}); got.Step.Touched == 0 {
					b.Fatal(got.Step.Note)
				}
			}
		})
	}
}
