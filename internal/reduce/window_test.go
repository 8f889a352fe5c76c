package reduce_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// TestWindowsAreKeptNear lets sessions grow under a limit of turns or tokens of dialogue
// that is far below the target: it holds, and a cut leaves at least half of it.
func TestWindowsAreKeptNear(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := reducetest.Policy()
		p.Cache = reduce.Cache{}
		if rapid.Bool().Draw(t, "turns") {
			p.Window.MaxTurns = rapid.Uint32Range(p.Collapse.KeepLastTurns, 20).Draw(t, "max_turns")
		} else {
			p.Window.MaxTokens = rapid.Uint64Range(3_000, 9_000).Draw(t, "max_tokens")
		}
		conv := reduce.NewConversation(gauge)
		var seq eventlog.Seq
		add := func(turn uint32, role eventlog.Role, blocks ...eventlog.Block) {
			seq++
			conv.Append(eventlog.Event{Seq: seq, Turn: turn, ID: fmt.Sprint(seq), Body: &eventlog.Message{Role: role, Blocks: blocks}})
		}
		add(0, eventlog.RoleUser, eventlog.Text{Text: "Count the handlers of each module."})
		var state reduce.State
		cuts := 0
		for turn := uint32(1); turn <= 60; turn++ {
			id := fmt.Sprint("c", turn)
			body := strings.Repeat(fmt.Sprintf("handler %d of some module\n", turn), rapid.IntRange(40, 80).Draw(t, "lines"))
			add(turn, eventlog.RoleAssistant, eventlog.ToolCall{CallID: id, Name: "read", Arguments: fmt.Sprintf(`{"path":"mod%d"}`, turn)})
			add(turn, eventlog.RoleTool, eventlog.ToolResult{CallID: id, Content: []eventlog.Block{eventlog.Text{Text: body}}})
			got, err := reduce.NewPipeline(p, conv).Run(budget.Budget{Target: 1_000_000}, state, reduce.Ask{})
			if err != nil {
				t.Fatal(err)
			}
			turns, tokens, largest := uint32(0), uint64(0), uint64(0)
			for i := range got.View.Len() {
				if g := got.View.Group(i); g.Kind == reduce.KindTurn {
					turns, tokens, largest = turns+1, tokens+got.View.GroupTokens(i), max(largest, g.Tokens)
				}
			}
			if most := p.Window.MaxTurns; most > 0 && turns > most || p.Window.MaxTokens > 0 && tokens > p.Window.MaxTokens {
				t.Fatalf("turn %d: %d turns, %d tokens under %+v", turn, turns, tokens, p.Window)
			}
			if got.State.CollapsedThrough > state.CollapsedThrough {
				cuts++
				if turns < (p.Window.MaxTurns+1)/2 || tokens+largest < p.Window.MaxTokens/2 {
					t.Fatalf("turn %d: a cut left %d turns, %d tokens under %+v", turn, turns, tokens, p.Window)
				}
			}
			state = got.State
		}
		if cuts == 0 {
			t.Fatalf("nothing was cut under %+v", p.Window)
		}
	})
}
