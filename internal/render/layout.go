package render

import (
	"fmt"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// DigestMessage is the message that replaces the dropped groups.
// It is the user's in role only: its text says that it is data.
func DigestMessage(d reduce.Digest) Message {
	return Message{
		Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: d.Text}}, Origin: Summary,
		Tokens: d.Tokens, Cause: "dialogue_window", Digest: true,
	}
}

// ReminderMessage is the message of a reminder that follows a view.
func ReminderMessage(v reduce.View, r reduce.Reminder) Message {
	role := r.RoleHint
	if role != eventlog.RoleSystem && role != eventlog.RoleAssistant {
		role = eventlog.RoleUser
	}
	return Message{
		Role: role, Blocks: []eventlog.Block{eventlog.Text{Text: r.Body}}, Origin: Reminder,
		Seqs: []eventlog.Seq{r.Seq}, Tokens: r.Tokens, Cause: "reminders", ReturnReasoning: v.ReturnsReasoning(),
	}
}

// GroupMessages are the messages of group i of the view under its edits.
func GroupMessages(v reduce.View, i int) []Message {
	g := v.Group(i)
	if d := v.Dropped(i); d != nil {
		return droppedMessages(v, i, d)
	}
	used := repeatsOf(g)
	out := make([]Message, 0, len(g.Messages))
	for m := range g.Messages {
		msg := &g.Messages[m]
		r := Message{
			Role: msg.Role, Origin: Verbatim, Seqs: msg.Seqs, Tokens: msg.Tokens, Model: msg.Model, Asked: v.Asked(), Recall: v.Recall(), ReturnReasoning: v.ReturnsReasoning(),
			Blocks: make([]eventlog.Block, 0, len(msg.Blocks)), Places: make([]eventlog.Place, 0, len(msg.Blocks)),
		}
		for b, block := range msg.Blocks {
			place := eventlog.Place{Seq: block.Seq, Block: block.Index}
			repeat := uint32(0)
			if used != nil {
				repeat = used.of(m, block.Block)
			}
			edit, ok := v.Edit(i, m, b)
			if used != nil && (!ok || edit.Kind != reduce.Omitted) {
				r.Repeats = append(r.Repeats, repeat)
			}
			if !ok {
				r.Blocks, r.Places = append(r.Blocks, block.Block), append(r.Places, place)
				continue
			}
			r.Tokens = r.Tokens + edit.Tokens - block.Tokens
			r.Cause = edit.Reducer
			switch edit.Kind {
			case reduce.Omitted:
				r.Unreasoned = true
				continue // what remains is as it was said
			case reduce.Stubbed:
				r.Origin = Stubbed
			case reduce.Clipped:
				r.Origin = Clipped
			case reduce.Redacted:
				r.Origin = Redacted
			}
			r.Blocks, r.Places = append(r.Blocks, edited(block.Block, edit.Text)), append(r.Places, place)
		}
		out = append(out, r)
	}
	return out
}

// repeats say how often the log used a group's call ids before. A group may use an id again once it was answered, so
// calls of an id are kept in order, and results by their message.
type repeats struct {
	calls   map[string][]uint32
	results map[int]uint32
}

// repeatsOf are those of a group; nil where none of its ids was used before.
func repeatsOf(g *reduce.Group) *repeats {
	if !slices.ContainsFunc(g.Calls, func(c reduce.Call) bool { return c.Repeat > 0 }) {
		return nil
	}
	r := &repeats{map[string][]uint32{}, map[int]uint32{}}
	for i := range g.Calls {
		c := &g.Calls[i]
		r.calls[c.ID] = append(r.calls[c.ID], c.Repeat)
		r.results[c.Result] = c.Repeat
	}
	return r
}

// of is how often the log used the id before of the call that a block of message m makes or answers. Ask for blocks in
// order.
func (r *repeats) of(m int, block eventlog.Block) uint32 {
	switch b := block.(type) {
	case eventlog.ToolCall:
		if next := r.calls[b.CallID]; len(next) > 0 {
			r.calls[b.CallID] = next[1:]
			return next[0]
		}
	case eventlog.ToolResult:
		return r.results[m]
	}
	return 0
}

// droppedMessages is the message that names the calls of a dropped group, if it
// made any. It is the user's in role only, as that of the digest.
func droppedMessages(v reduce.View, i int, d *reduce.Dropped) []Message {
	if d.Text == "" {
		return nil
	}
	return []Message{{
		Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: d.Text}}, Origin: Summary,
		Tokens: v.GroupTokens(i), Cause: d.Reducer,
	}}
}

// edited returns the block with its text replaced.
func edited(b eventlog.Block, text string) eventlog.Block {
	if r, ok := b.(eventlog.ToolResult); ok {
		r.Content = []eventlog.Block{eventlog.Text{Text: text}}
		return r
	}
	return eventlog.Text{Text: text}
}

// LiveReminders returns the reminders that are to be rendered when the log holds so
// many turns and the run through an event has left, oldest first.
func LiveReminders(all []reduce.Reminder, turns uint32, collapsed eventlog.Seq) []reduce.Reminder {
	var live []reduce.Reminder
	for i, fate := range reduce.Fates(all, turns, collapsed) {
		if fate == reduce.ReminderLive {
			live = append(live, all[i])
		}
	}
	return live
}

// InjectionMessage is the message that carries an injection.
func InjectionMessage(in Injection, tokens uint64) Message {
	return Message{Role: eventlog.RoleUser, Blocks: in.Blocks, Origin: Injected, Tokens: tokens, Cause: fmt.Sprintf("injection %q", in.Name)}
}
