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

// ReminderMessage is the message of a reminder.
func ReminderMessage(r reduce.Reminder) Message {
	role := r.RoleHint
	if role != eventlog.RoleSystem && role != eventlog.RoleAssistant {
		role = eventlog.RoleUser
	}
	return Message{
		Role: role, Blocks: []eventlog.Block{eventlog.Text{Text: r.Body}}, Origin: Reminder,
		Seqs: []eventlog.Seq{r.Seq}, Tokens: r.Tokens, Cause: "reminders",
	}
}

// GroupMessages are the messages of group i of the view under its edits.
func GroupMessages(v reduce.View, i int) []Message {
	g := v.Group(i)
	if d := v.Dropped(i); d != nil {
		return droppedMessages(v, i, d)
	}
	repeated, seen := repeats(g), map[string]int{}
	out := make([]Message, 0, len(g.Messages))
	for m := range g.Messages {
		msg := &g.Messages[m]
		r := Message{
			Role: msg.Role, Origin: Verbatim, Seqs: msg.Seqs, Tokens: msg.Tokens, Model: msg.Model, Recall: v.Recall(),
			Blocks: make([]eventlog.Block, 0, len(msg.Blocks)), Places: make([]eventlog.Place, 0, len(msg.Blocks)),
		}
		for b, block := range msg.Blocks {
			place := eventlog.Place{Seq: block.Seq, Block: block.Index}
			repeat := uint32(0)
			if repeated {
				repeat = repeatOf(g, m, block.Block, seen)
			}
			edit, ok := v.Edit(i, m, b)
			if repeated && (!ok || edit.Kind != reduce.Omitted) {
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

// repeats reports whether a group has a call whose id the log had used before.
func repeats(g *reduce.Group) bool {
	return slices.ContainsFunc(g.Calls, func(c reduce.Call) bool { return c.Repeat > 0 })
}

// repeatOf is how often the log had used the id of the call that a block of message m makes
// or answers. seen counts the group's calls by id: one group may use an id again once it was
// answered, and its calls are in the order of their blocks.
func repeatOf(g *reduce.Group, m int, block eventlog.Block, seen map[string]int) uint32 {
	switch b := block.(type) {
	case eventlog.ToolCall:
		nth := seen[b.CallID]
		seen[b.CallID]++
		for i := range g.Calls {
			if g.Calls[i].ID != b.CallID {
				continue
			}
			if nth == 0 {
				return g.Calls[i].Repeat
			}
			nth--
		}
	case eventlog.ToolResult:
		if i := slices.IndexFunc(g.Calls, func(c reduce.Call) bool { return c.Result == m }); i >= 0 {
			return g.Calls[i].Repeat
		}
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
