package render_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
	"github.com/contextd/contextd/internal/render"
)

var gauge = reducetest.Gauge

func text(s string) eventlog.Block { return eventlog.Text{Text: s} }

// conversation takes in messages as events 1, 2, 3 and so on.
func conversation(all ...*eventlog.Message) *reduce.Conversation {
	c := reduce.NewConversation(gauge)
	turn := uint32(0)
	for i, m := range all {
		if m.Role == eventlog.RoleAssistant {
			turn++
		}
		c.Append(eventlog.Event{Seq: eventlog.Seq(i + 1), Turn: turn, ID: fmt.Sprint(i), Body: m})
	}
	return c
}

func say(role eventlog.Role, blocks ...eventlog.Block) *eventlog.Message {
	return &eventlog.Message{Role: role, Blocks: blocks}
}

// twoCalls is a user message and a turn with two calls, the second of which was
// interrupted.
func twoCalls() (*reduce.Conversation, eventlog.ToolResult) {
	result := eventlog.ToolResult{CallID: "c1", ToolName: "read", IsError: true, Content: []eventlog.Block{text(strings.Repeat("b", 400)), eventlog.Media{MIMEType: "image/png"}}}
	return conversation(
		say(eventlog.RoleUser, text(strings.Repeat("q", 400)), text("second part")),
		say(eventlog.RoleAssistant, eventlog.Thinking{Text: strings.Repeat("t", 80)}, text("I look."), eventlog.Thinking{Text: "hm"},
			eventlog.ToolCall{CallID: "c1", Name: "read", Arguments: `{"n": 1.0}`}, eventlog.ToolCall{CallID: "c2", Name: "bash", Arguments: `{}`}),
		say(eventlog.RoleTool, result),
	), result
}

func checkMessages(t *testing.T, got, want []render.Message) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d messages instead of %d: %+v", len(got), len(want), got)
	}
	for i := range got {
		if len(got[i].Places) != len(got[i].Blocks) && got[i].Places != nil {
			t.Errorf("message %d: %d places for %d blocks", i, len(got[i].Places), len(got[i].Blocks))
		}
		got[i].Places = nil // TestGroupMessagesSayWhereFrom
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("message %d:\n got %+v\nwant %+v", i, got[i], want[i])
		}
	}
}

// size is what a message measures from scratch.
func size(m render.Message) uint64 {
	n := uint64(budget.MessageOverhead)
	for _, b := range m.Blocks {
		n += gauge.Block(b)
	}
	return n
}

func TestGroupMessagesInFull(t *testing.T) {
	c, result := twoCalls()
	v := reduce.NewView(gauge, c.Groups())
	interrupted := eventlog.ToolResult{CallID: "c2", ToolName: "bash", Content: []eventlog.Block{text(reduce.InterruptedText)}, IsError: true}
	want := []render.Message{
		{
			Role: eventlog.RoleAssistant, Origin: render.Verbatim, Seqs: []eventlog.Seq{2},
			Blocks: []eventlog.Block{
				eventlog.Thinking{Text: strings.Repeat("t", 80)}, text("I look."), eventlog.Thinking{Text: "hm"},
				eventlog.ToolCall{CallID: "c1", Name: "read", Arguments: `{"n": 1.0}`}, eventlog.ToolCall{CallID: "c2", Name: "bash", Arguments: `{}`},
			},
		},
		{Role: eventlog.RoleTool, Origin: render.Verbatim, Seqs: []eventlog.Seq{3}, Blocks: []eventlog.Block{result}},
		{Role: eventlog.RoleTool, Origin: render.Verbatim, Blocks: []eventlog.Block{interrupted}},
	}
	for i := range want {
		want[i].Tokens = size(want[i])
	}
	checkMessages(t, render.GroupMessages(v, 1), want)
	checkMessages(t, render.GroupMessages(v, 0), []render.Message{{
		Role: eventlog.RoleUser, Origin: render.Verbatim, Seqs: []eventlog.Seq{1}, Tokens: budget.MessageOverhead + 100 + 3,
		Blocks: []eventlog.Block{text(strings.Repeat("q", 400)), text("second part")},
	}})
}

func TestGroupMessagesUnderEdits(t *testing.T) {
	c, _ := twoCalls()
	v := reduce.NewView(gauge, c.Groups())
	call := &c.Groups()[1].Calls[0]
	stubbed := eventlog.ToolResult{CallID: "c1", ToolName: "read", IsError: true, Content: []eventlog.Block{text("[gone: ctx:3.0]")}}
	stub := render.Message{
		Role: eventlog.RoleTool, Origin: render.Stubbed, Seqs: []eventlog.Seq{3}, Cause: "retention",
		Blocks: []eventlog.Block{stubbed}, Tokens: budget.MessageOverhead + budget.ResultOverhead + 4,
	}
	clip := stub
	clip.Origin, clip.Cause = render.Clipped, "clipping"
	for name, c := range map[string]struct {
		edit           func(*reduce.Editor) bool
		group, message int
		want           render.Message
	}{
		"stub": {func(e *reduce.Editor) bool {
			return e.Replace(1, call, reduce.Stubbed, "[gone: ctx:3.0]", "retention", "old")
		}, 1, 1, stub},
		"clip": {func(e *reduce.Editor) bool {
			return e.Replace(1, call, reduce.Clipped, "[gone: ctx:3.0]", "clipping", "large")
		}, 1, 1, clip},
		"omit": {func(e *reduce.Editor) bool { return e.OmitThinking(1, "thinking", "old") }, 1, 0, render.Message{
			Role: eventlog.RoleAssistant, Origin: render.Verbatim, Seqs: []eventlog.Seq{2}, Cause: "thinking", Unreasoned: true,
			Blocks: []eventlog.Block{
				text("I look."), eventlog.ToolCall{CallID: "c1", Name: "read", Arguments: `{"n": 1.0}`}, eventlog.ToolCall{CallID: "c2", Name: "bash", Arguments: `{}`},
			},
			Tokens: budget.MessageOverhead + 2 + 2*budget.CallOverhead + 1 + 3 + 1 + 1,
		}},
		"clipped anchor": {func(e *reduce.Editor) bool { return e.ClipAnchor(0, 0, 0, "q… ctx:1.0", "window", "large") }, 0, 0, render.Message{
			Role: eventlog.RoleUser, Origin: render.Clipped, Seqs: []eventlog.Seq{1}, Cause: "window",
			Blocks: []eventlog.Block{text("q… ctx:1.0"), text("second part")}, Tokens: budget.MessageOverhead + 3 + 3,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e := v.Editor()
			if !c.edit(e) {
				t.Fatal("the edit was refused")
			}
			after := e.View()
			got := render.GroupMessages(after, c.group)
			checkMessages(t, got[c.message:c.message+1], []render.Message{c.want})
			full := render.GroupMessages(v, c.group)
			var tokens uint64
			for i, m := range got {
				tokens += m.Tokens
				if m.Tokens != size(m) {
					t.Errorf("message %d says %d tokens and measures %d", i, m.Tokens, size(m))
				}
				if i != c.message && !reflect.DeepEqual(m, full[i]) {
					t.Errorf("message %d changed too: %+v", i, m)
				}
			}
			if tokens != after.GroupTokens(c.group) {
				t.Errorf("messages have %d tokens and their group %d", tokens, after.GroupTokens(c.group))
			}
		})
	}
}

// Each block says where it is in the log, also after one that is left out, and a
// call id that was used before how often.
func TestGroupMessagesSayWhereFrom(t *testing.T) {
	first := say(eventlog.RoleAssistant, eventlog.ToolCall{CallID: "c1", Name: "read"})
	again := say(eventlog.RoleAssistant, eventlog.Thinking{Text: "hm"}, text("More."), eventlog.ToolCall{CallID: "c1", Name: "read"})
	again.Model = "some-model"
	answer := say(eventlog.RoleTool, eventlog.ToolResult{CallID: "c1", Content: []eventlog.Block{text("ok")}})
	c := conversation(first, answer, again, answer)
	e := reduce.NewView(gauge, c.Groups()).Editor()
	if !e.OmitThinking(1, "thinking", "old") {
		t.Fatal("the edit was refused")
	}
	v := e.View()
	if m := render.GroupMessages(v, 0)[0]; m.Repeats != nil {
		t.Errorf("the first call counts as repeated: %v", m.Repeats)
	}
	repeats := [][]uint32{{0, 1}, {1}}
	for i, want := range [][]eventlog.Place{{{Seq: 3, Block: 1}, {Seq: 3, Block: 2}}, {{Seq: 4}}} {
		m := render.GroupMessages(v, 1)[i]
		if !slices.Equal(m.Places, want) || !slices.Equal(m.Repeats, repeats[i]) {
			t.Errorf("message %d: places %v, repeats %v", i, m.Places, m.Repeats)
		}
	}
	if m := render.GroupMessages(v, 1)[0]; m.Model != "some-model" {
		t.Errorf("model %q", m.Model)
	}
}

// A group that was answered may use a call's id again: its calls stay two, with a result each.
func TestOneIDTwiceInAGroup(t *testing.T) {
	call := func() *eventlog.Message {
		m := say(eventlog.RoleAssistant, eventlog.ToolCall{CallID: "c1", Name: "read"})
		m.GroupID = "g"
		return m
	}
	answer := say(eventlog.RoleTool, eventlog.ToolResult{CallID: "c1", Content: []eventlog.Block{text("ok")}})
	c := conversation(call(), answer, call())
	got := render.GroupMessages(reduce.NewView(gauge, c.Groups()), 0)
	if len(c.Groups()) != 1 || len(got) != 3 {
		t.Fatalf("%d groups with %d messages", len(c.Groups()), len(got))
	}
	for i, want := range [][]uint32{{0, 1}, {0}, {1}} {
		if !slices.Equal(got[i].Repeats, want) {
			t.Errorf("message %d repeats %v, want %v", i, got[i].Repeats, want)
		}
	}
}

func TestDigestMessage(t *testing.T) {
	got := render.DigestMessage(reduce.Digest{Through: 9, Text: "[contextd: gone]", Tokens: 11, Groups: 2})
	checkMessages(t, []render.Message{got}, []render.Message{{
		Role: eventlog.RoleUser, Blocks: []eventlog.Block{text("[contextd: gone]")}, Origin: render.Summary, Tokens: 11, Cause: "dialogue_window", Digest: true,
	}})
}

func TestReminderMessage(t *testing.T) {
	for hint, role := range map[eventlog.Role]eventlog.Role{
		eventlog.RoleUnspecified: eventlog.RoleUser,
		eventlog.RoleUser:        eventlog.RoleUser,
		eventlog.RoleSystem:      eventlog.RoleSystem,
		eventlog.RoleAssistant:   eventlog.RoleAssistant,
		eventlog.RoleTool:        eventlog.RoleUser, // a tool message needs a call
	} {
		got := render.ReminderMessage(reduce.View{}, reduce.Reminder{Reminder: &eventlog.Reminder{Body: "run the tests", RoleHint: hint}, Seq: 5, Turn: 2, Tokens: 8})
		checkMessages(t, []render.Message{got}, []render.Message{{
			Role: role, Blocks: []eventlog.Block{text("run the tests")}, Origin: render.Reminder, Seqs: []eventlog.Seq{5}, Tokens: 8, Cause: "reminders",
		}})
	}
}

func TestInjectionMessage(t *testing.T) {
	blocks := []eventlog.Block{text("now"), eventlog.Media{URI: "u"}}
	got := render.InjectionMessage(render.Injection{Name: `the "clock"`, Blocks: blocks, ReserveTokens: 100}, 12)
	checkMessages(t, []render.Message{got}, []render.Message{{
		Role: eventlog.RoleUser, Blocks: blocks, Origin: render.Injected, Tokens: 12, Cause: `injection "the \"clock\""`,
	}})
}

// reminder is a reminder of a turn; a ttl of 0 is forever.
func reminder(seq eventlog.Seq, turn uint32, ttl int, key string) reduce.Reminder {
	r := &eventlog.Reminder{Body: fmt.Sprint(seq), DedupeKey: key}
	if ttl > 0 {
		turns := uint32(ttl)
		r.TTLTurns = &turns
	}
	return reduce.Reminder{Reminder: r, Seq: seq, Turn: turn}
}

func seqsOf(all []reduce.Reminder) string {
	var s []string
	for _, r := range all {
		s = append(s, fmt.Sprint(r.Seq))
	}
	return strings.Join(s, " ")
}

func TestLiveReminders(t *testing.T) {
	all := []reduce.Reminder{
		reminder(1, 0, 0, ""),
		reminder(2, 1, 1, ""), // for the next call only
		reminder(3, 1, 2, ""),
		reminder(4, 1, 0, "a"),
		reminder(5, 2, 3, "b"),
		reminder(6, 2, 0, "a"),
		reminder(7, 3, 1, "b"), // replaces 5 and dies before it would have
		reminder(8, 3, 1<<32-1, ""),
	}
	all[5].PreserveOnCompact = true
	for _, c := range []struct {
		turns     uint32
		collapsed eventlog.Seq
		want      string
	}{
		{3, 0, "1 6 7 8"},
		{4, 0, "1 6 8"},
		{9, 0, "1 6 8"},
		{3, 6, "6 7 8"},
		{3, 8, "6"},
	} {
		if got := seqsOf(render.LiveReminders(all, c.turns, c.collapsed)); got != c.want {
			t.Errorf("at turn %d, collapsed through %d: %s, want %s", c.turns, c.collapsed, got, c.want)
		}
	}
	if got := seqsOf(render.LiveReminders(all[:4], 1, 0)); got != "1 2 3 4" {
		t.Errorf("in the first call: %s", got)
	}
	if got := seqsOf(render.LiveReminders(all[:4], 2, 0)); got != "1 3 4" {
		t.Errorf("in the second call: %s", got)
	}
	if got := render.LiveReminders(nil, 3, 0); len(got) != 0 {
		t.Errorf("of none: %v", got)
	}
}

func TestLiveRemindersAgainstLookingAtEach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []reduce.Reminder
		turn := uint32(0)
		for i := range rapid.IntRange(0, 12).Draw(t, "reminders") {
			turn += rapid.Uint32Range(0, 2).Draw(t, "turns")
			r := reminder(eventlog.Seq(i+1), turn, rapid.IntRange(0, 6).Draw(t, "ttl"), rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "key"))
			r.PreserveOnCompact = rapid.Bool().Draw(t, "preserve")
			all = append(all, r)
		}
		turn += rapid.Uint32Range(0, 3).Draw(t, "turns")
		collapsed := eventlog.Seq(rapid.IntRange(0, 12).Draw(t, "collapsed"))
		var want []reduce.Reminder
		for i, r := range all {
			live := r.TTLTurns == nil || uint64(turn) < uint64(r.Turn)+uint64(*r.TTLTurns)
			live = live && (r.PreserveOnCompact || r.Seq > collapsed)
			for _, newer := range all[i+1:] {
				live = live && (r.DedupeKey == "" || newer.DedupeKey != r.DedupeKey)
			}
			if live {
				want = append(want, r)
			}
		}
		if got := render.LiveReminders(all, turn, collapsed); seqsOf(got) != seqsOf(want) {
			t.Errorf("%s, want %s", seqsOf(got), seqsOf(want))
		}
	})
}
