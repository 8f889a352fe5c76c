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

// BenchmarkCustom applies expressions to a session of 2,000 groups as it is at a
// further request: the policy has seen it before and decided.
func BenchmarkCustom(b *testing.B) {
	const groups = 2000
	conv := reduce.NewConversation(gauge)
	var seq eventlog.Seq
	add := func(turn uint32, body eventlog.Body) {
		seq++
		conv.Append(eventlog.Event{Seq: seq, Turn: turn, ID: fmt.Sprint(seq), Body: body})
	}
	add(0, reducetest.Say(eventlog.RoleUser, reducetest.Text("Fix the parser.")))
	for turn := range uint32(groups - 1) {
		id := fmt.Sprint("c", turn)
		add(turn+1, reducetest.Say(eventlog.RoleAssistant, reducetest.Call(id)))
		add(turn+1, reducetest.Say(eventlog.RoleTool, reducetest.Result(id, strings.Repeat(fmt.Sprintf("line %d\n", turn), 100))))
	}
	view := reduce.NewView(gauge, conv.Groups())
	for _, c := range []struct{ name, source string }{
		{"keep", `age < 100000 || errors > 0`},
		{"tools", `tools.exists(t, t.startsWith("mcp__")) ? "stub" : "keep"`},
		{"stub half", `age > 1000 ? "stub" : "keep"`},
		{"drop half", `age < 1000`},
		{"result", `calls.exists(c, c.result.contains("Traceback") && c.succeeded_later) ? "stub" : "keep"`},
		{"arguments", `calls.exists(c, has(c.arguments.path) && c.arguments.path.startsWith("vendor/")) ? "stub" : "keep"`},
		{"text", `text.matches("(?i)plan") ? "keep" : "stub"`},
	} {
		b.Run(c.name, func(b *testing.B) {
			p, err := projection.New(projection.Options{Name: projection.CustomExpression, Expression: c.source})
			if err != nil {
				b.Fatal(err)
			}
			state := p.Apply(view, conv.Turns(), projection.State{}).State
			b.ReportAllocs()
			for b.Loop() {
				p.Apply(view, conv.Turns(), state)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/groups, "ns/group")
		})
	}
}
