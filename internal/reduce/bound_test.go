package reduce

import (
	"testing"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// TestUnbound has two turns with bound reasoning, of which the first was interrupted, and a message of the user
// between them.
func TestUnbound(t *testing.T) {
	turn := func(seq eventlog.Seq, labels map[string]string, results ...Message) *Group {
		thought := Block{Block: eventlog.Thinking{Signature: "c2VhbA=="}, Seq: seq}
		said := Message{Role: eventlog.RoleAssistant, Model: "claude-opus-5-5", Blocks: []Block{thought}}
		return &Group{Kind: KindTurn, First: seq, Labels: labels, Messages: append([]Message{said}, results...)}
	}
	user := func(seq eventlog.Seq) *Group {
		said := Message{Role: eventlog.RoleUser, Blocks: []Block{{Block: eventlog.Text{Text: "Go on."}, Seq: seq}}}
		return &Group{Kind: KindUser, First: seq, Messages: []Message{said}}
	}
	interrupted := Message{Role: eventlog.RoleTool, Blocks: []Block{{Block: eventlog.ToolResult{CallID: "c"}}}}
	own := map[string]string{eventlog.LabelOwnPrompt: "true"}
	for name, c := range map[string]struct {
		seen   Seen
		labels map[string]string // of the last turn
		want   eventlog.Seq
	}{
		"no context before":               {Seen{}, nil, 0},
		"no such context before":          {Seen{Other: true}, nil, 1},
		"all is as before":                {Seen{AsOf: 4}, nil, 0},
		"an answer was added":             {Seen{AsOf: 3, From: eventlog.Place{Seq: 4}}, nil, 0},
		"an answer to something else":     {Seen{AsOf: 3, From: eventlog.Place{Seq: 4}, Other: true}, nil, 4},
		"an answer, and before it a user": {Seen{AsOf: 2, From: eventlog.Place{Seq: 3}}, nil, 3},
		"a change of the user's message":  {Seen{AsOf: 4, From: eventlog.Place{Seq: 3}}, nil, 4},
		"a change of the first message":   {Seen{AsOf: 4, From: eventlog.Place{Seq: 1}}, nil, 2},
		"a harness's own prompt":          {Seen{}, own, 3},
	} {
		v := NewView(budget.NewGauge(budget.Heuristic{}), []*Group{user(1), turn(2, nil, interrupted), user(3), turn(4, c.labels)})
		if got := v.Unbound(c.seen); got != c.want {
			t.Errorf("%s: from %d, want %d", name, got, c.want)
		}
	}
	changed := Seen{AsOf: 4, From: eventlog.Place{Seq: 1}}
	v := NewView(budget.NewGauge(budget.Heuristic{}), []*Group{user(1), turn(2, nil), user(3), turn(4, nil)})
	v.items[1].dropped = &Dropped{}
	if got := v.Unbound(changed); got != 4 {
		t.Errorf("where a turn is dropped: from %d, want 4", got)
	}
}
