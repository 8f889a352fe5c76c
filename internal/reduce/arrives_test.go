package reduce_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// Whether a cut pays depends on what a summary would take. It is asked once for each
// state of the log, so that a summary that arrives after a run waits for the next
// event.
func TestASummaryThatArrivesRewritesNothingByItself(t *testing.T) {
	for _, payback := range []uint32{4, 10, 20} {
		t.Run(fmt.Sprint(payback), func(t *testing.T) {
			policy := reducetest.Policy()
			policy.Collapse.CutFrom, policy.Collapse.CutPaybackTurns = 0.6, payback
			policy.Collapse.To, policy.Collapse.LedgerShare, policy.Collapse.IndexShare = 0.5, 0.02, 0.02 // room for a summary to matter
			b := budget.Budget{Target: 20_000}
			s := newSession()
			for _, e := range unevenSession(300) {
				if err := s.append(e); err != nil {
					t.Fatal(err)
				}
				first, err := reduce.NewPipeline(policy, s.conv).Run(b, s.state, reduce.Ask{})
				if err != nil {
					t.Fatal(err)
				}
				s.state = first.State
				for _, words := range []int{10, 1000, 3500} {
					for back := eventlog.Seq(4); back < 40 && back < e.Seq; back += 7 {
						summary := reduce.Summary{ID: "s", Through: e.Seq - back, By: "test", Text: strings.Repeat("word ", words)}
						again, err := reduce.NewPipeline(policy, s.conv, summary).Run(b, s.state, reduce.Ask{})
						if err != nil {
							t.Fatal(err)
						}
						if again.View.Tokens() != first.View.Tokens() || !reflect.DeepEqual(again.State, first.State) {
							t.Fatalf("event %d: with a summary of %d words through event %d, %d tokens became %d:\n%+v\n%+v",
								e.Seq, words, summary.Through, first.View.Tokens(), again.View.Tokens(), first.State, again.State)
						}
					}
				}
			}
			if s.state.CollapsedThrough == 0 {
				t.Error("nothing was ever cut")
			}
		})
	}
}

// unevenSession is one of small turns of different sizes.
func unevenSession(events int) []eventlog.Event {
	var all []eventlog.Event
	add := func(role eventlog.Role, blocks ...eventlog.Block) {
		all = append(all, eventlog.Event{Body: &eventlog.Message{Role: role, Blocks: blocks}})
	}
	add(eventlog.RoleUser, eventlog.Text{Text: "Read everything."})
	for turn := 0; len(all) < events; turn++ {
		var calls, results []eventlog.Block
		for k := range 1 + turn%2 {
			id, file := fmt.Sprintf("call_%d_%d", turn, k), fmt.Sprintf("pkg/mod%d_%d.go", turn, k)
			calls = append(calls, eventlog.ToolCall{CallID: id, Name: "read_file", Arguments: fmt.Sprintf(`{"path":%q}`, file)})
			results = append(results, eventlog.ToolResult{CallID: id, Content: []eventlog.Block{eventlog.Text{Text: reducetest.Lines(5+turn*7%40, file)}}})
		}
		add(eventlog.RoleAssistant, calls...)
		add(eventlog.RoleTool, results...)
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
