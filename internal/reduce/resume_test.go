package reduce

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// words counts a token for every word, so that sizes can be read off the texts.
type words struct{}

func (words) Name() string { return "words" }

func (words) Count(text string) budget.Count { return budget.Count{Tokens: len(strings.Fields(text))} }

func (w words) Cost(text string) uint64 { return uint64(w.Count(text).Tokens) }

func (words) PerToken() uint64 { return 1 }

// A run that leaves all at once from what was gathered about it gives the view
// that the verb gives when it goes through every group.
func TestResumeAgreesWithCollapse(t *testing.T) {
	conv := NewConversation(budget.NewGauge(words{}))
	var events []eventlog.Event
	say := func(role eventlog.Role, pinned bool, blocks ...eventlog.Block) {
		events = append(events, eventlog.Event{Body: &eventlog.Message{Role: role, Pinned: pinned, Blocks: blocks}})
	}
	say(eventlog.RoleSystem, false, eventlog.Text{Text: "You help."})
	for i := range 60 {
		if i%5 == 0 {
			say(eventlog.RoleUser, i == 20, eventlog.Text{Text: strings.Repeat("please ", 1+i*i%90)})
		}
		id := fmt.Sprintf("call_%d", i)
		say(eventlog.RoleAssistant, i == 33, eventlog.ToolCall{CallID: id, Name: "run", Arguments: fmt.Sprintf(`{"path":"src/file_%d.go"}`, i)})
		say(eventlog.RoleTool, false, eventlog.ToolResult{CallID: id, Content: []eventlog.Block{eventlog.Text{Text: strings.Repeat("some_line of output\n", 40)}}})
	}
	_, admitted, err := eventlog.Head{}.Admit(events)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range admitted {
		conv.Append(e)
	}
	p := NewPipeline(DefaultPolicy(), conv)
	for _, target := range []uint64{200, 2_000, 20_000} {
		for _, g := range conv.Groups() {
			got := p.Resume(State{CollapsedThrough: g.First, CollapsedFor: target})
			digest, _ := got.Digest()
			want := NewView(conv.Gauge(), conv.Groups())
			want.asked = p.asked()
			if e := want.Editor(); e.Collapse(g.First, keptUsers(conv.Groups(), g.First, target), digest.Text) {
				want = e.View()
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("through event %d for %d tokens: %d groups, %d tokens, digest %+v; want %d, %d, %+v",
					g.First, target, got.Len(), got.Tokens(), got.digest, want.Len(), want.Tokens(), want.digest)
			}
		}
	}
}

// keptUsers goes by the rule from the newest user message of a run on.
func keptUsers(groups []*Group, through eventlog.Seq, target uint64) map[*Group]bool {
	keep := map[*Group]bool{}
	share := fraction(target, userShare)
	var sum uint64
	for _, g := range slices.Backward(groups) {
		if g.First > through || g.Kind != KindUser || g.Anchor || g.Pinned {
			continue
		}
		if sum += g.Tokens; sum > share && (len(keep) > 0 || g.Tokens >= target/2) {
			break
		}
		keep[g] = true
	}
	return keep
}
