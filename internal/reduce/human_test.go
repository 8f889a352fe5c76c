package reduce_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// checkHumans checks that what a human said first and last is there as it was said, or
// clipped where docs/policies.md has it clipped.
func checkHumans(t fataler, r *record, p *reduce.Pipeline, conv *reduce.Conversation, b budget.Budget, before reduce.State, now reduce.Result) {
	v := now.View
	first := r.firstUser
	if len(r.humans) > 0 {
		first = r.humans[0]
	}
	if first == 0 {
		return
	}
	i, ok := groupAt(v, first)
	if !ok || !v.Group(i).Anchor {
		t.Fatalf("event %d, what was said first, is gone or no part of the anchor:\n%s", first, linesOf(reducetest.Show(v)))
	}
	anchors := 0
	for _, g := range conv.Groups() {
		if g.Anchor && g.Kind == reduce.KindUser {
			anchors++
		}
	}
	if anchors > 1 {
		t.Fatalf("%d user messages are anchors", anchors)
	}
	clipped := slices.ContainsFunc(v.Edits(i), func(e reduce.Edit) bool { return e.Kind == reduce.Clipped })
	if clipped && now.State.AnchorTokens == 0 && v.Group(i).Kind == reduce.KindUser {
		t.Fatalf("event %d was edited although it leaves half of the target: %+v", first, v.Edits(i))
	}
	if len(r.humans) == 0 {
		return
	}
	newest := r.humans[len(r.humans)-1]
	at, ok := groupAt(v, newest)
	if !ok {
		t.Fatalf("event %d, what a human said last, is gone:\n%s", newest, linesOf(reducetest.Show(v)))
	}
	if slices.Equal(before.TextClips, now.State.TextClips) || at == i {
		return // what was clipped earlier stays so
	}
	g := v.Group(at)
	for _, e := range v.Edits(at) {
		if !g.Messages[e.Message].Human || e.Kind != reduce.Clipped {
			continue
		}
		was := uint64(0)
		for _, c := range before.TextClips {
			if seq := g.Messages[e.Message].Blocks[e.Block].Seq; seq > c.From && seq <= c.Through {
				was = c.Tokens
			}
		}
		if was > 0 {
			continue
		}
		limit := min(b.Target/2, b.Target*3/4-min(v.GroupTokens(i), b.Target*3/4))
		if g.Tokens <= max(b.Target/4, limit) && moreCouldLeave(p, conv, now) {
			t.Fatalf("event %d takes %d of %d tokens and is clipped while more could leave:\n%s", newest, g.Tokens, b.Target, linesOf(reducetest.Show(v)))
		}
	}
}

// stoodAfter reports whether an event after another was to be in its place.
func (r *record) stoodAfter(name string, seq eventlog.Seq) bool {
	return slices.ContainsFunc(r.events[seq:], func(e eventlog.Event) bool {
		return e.Injected() && e.Labels[eventlog.LabelStanding] == name
	})
}

// moreCouldLeave reports whether the view would become smaller if everything left that
// may: what leaves must be larger than what the record of it adds.
func moreCouldLeave(p *reduce.Pipeline, conv *reduce.Conversation, now reduce.Result) bool {
	s := now.State
	s.CollapsedThrough, s.CollapsedFor = conv.Head(), 0
	least := p.Resume(s)
	record, _ := least.Digest()
	there, _ := now.View.Digest()
	frees := there.Tokens
	for i := range now.View.Len() {
		if !slices.Contains(least.Groups(), now.View.Group(i)) {
			frees += now.View.GroupTokens(i)
		}
	}
	return frees > record.Tokens
}

// groupAt finds the group of the view that shows an event.
func groupAt(v reduce.View, seq eventlog.Seq) (int, bool) {
	for i := range v.Len() {
		for _, m := range v.Group(i).Messages {
			if m.Role == eventlog.RoleUser && slices.Contains(m.Seqs, seq) {
				return i, v.Dropped(i) == nil
			}
		}
	}
	return 0, false
}

// checkStanding checks that of the runtime's standing messages the newest of each name is
// there, unless not even the newest turn had room, or a caller's compaction let it leave
// that a newer one replaced then.
func checkStanding(t fataler, r *record, conv *reduce.Conversation, now reduce.Result) {
	v := now.View
	if now.State.CollapsedFor == 0 && now.State.CollapsedThrough > 0 {
		return
	}
	newest := map[string]*reduce.Group{}
	for _, g := range conv.Groups() {
		if g.Standing != "" {
			newest[g.Standing] = g
		}
	}
	for name, g := range newest {
		if !slices.Contains(v.Groups(), g) && !(conv.Decided().Drops(g) && r.stoodAfter(name, g.Last)) {
			t.Fatalf("event %d, the newest of %s, is gone:\n%s", g.First, name, linesOf(reducetest.Show(v)))
		}
	}
}

// TestTextsOfATurnAreClippedAlone: what a human says in the message that holds a result stays whole
// when the texts of the result's turn are clipped.
func TestTextsOfATurnAreClippedAlone(t *testing.T) {
	s := newSession()
	said := strings.Repeat("keep this line\n", 25)
	if err := s.append(
		message(eventlog.RoleUser, eventlog.Text{Text: "Go."}),
		message(eventlog.RoleAssistant, eventlog.Text{Text: "I look."}, eventlog.ToolCall{CallID: "c1", Name: "read", Arguments: `{}`}),
		message(eventlog.RoleUser, eventlog.ToolResult{CallID: "c1", Content: []eventlog.Block{eventlog.Text{Text: "ok"}}}, eventlog.Text{Text: said}),
		message(eventlog.RoleAssistant, eventlog.ToolCall{CallID: "c2", Name: "write", Arguments: fmt.Sprintf(`{"text":%q}`, strings.Repeat("many words ", 800))}),
	); err != nil {
		t.Fatal(err)
	}
	r, err := reduce.NewPipeline(reducetest.Policy(), s.conv).Run(budget.Budget{Target: 300}, s.state, reduce.Ask{})
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := groupAt(r.View, 3); !ok || len(r.View.Edits(at)) > 0 {
		t.Errorf("what the human said is not there as it was said:\n%s", linesOf(reducetest.Show(r.View)))
	}
}
