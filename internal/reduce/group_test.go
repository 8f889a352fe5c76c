package reduce_test

import (
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

func TestCharsAndBodyText(t *testing.T) {
	text := eventlog.Text{Text: "größer"}
	for name, c := range map[string]struct {
		block eventlog.Block
		chars int
		body  string
	}{
		"text":            {text, 6, "größer"},
		"thinking":        {eventlog.Thinking{Text: "größer", Signature: "sig"}, 6, ""},
		"call":            {eventlog.ToolCall{CallID: "c", Name: "read", Arguments: `{"ö":1}`}, 7, ""},
		"result":          {eventlog.ToolResult{Content: []eventlog.Block{text}}, 6, "größer"},
		"empty result":    {eventlog.ToolResult{}, 0, ""},
		"mixed result":    {eventlog.ToolResult{Content: []eventlog.Block{text, eventlog.Media{}, eventlog.ProviderBlock{JSON: "{}"}, text}}, 14, "größer\ngrößer"},
		"picture as text": {eventlog.ToolResult{Content: []eventlog.Block{eventlog.Media{URI: "u"}}}, 0, ""},
		"media":           {eventlog.Media{Data: "raw"}, 0, ""},
		"provider":        {eventlog.ProviderBlock{JSON: `{"ö":1}`}, 7, ""},
	} {
		if got := reduce.Chars(c.block); got != c.chars {
			t.Errorf("%s: %d characters, want %d", name, got, c.chars)
		}
		if got := reduce.BodyText(c.block); got != c.body {
			t.Errorf("%s: body %q, want %q", name, got, c.body)
		}
	}
}

// TestReminders: they are no part of the conversation, but counted beside it.
func TestReminders(t *testing.T) {
	conv := reduce.NewConversation(gauge)
	reminder := &eventlog.Reminder{Body: strings.Repeat("r", 40)}
	conv.Append(eventlog.Event{Seq: 1, Turn: 0, Body: reminder})
	conv.Append(eventlog.Event{Seq: 2, Turn: 1, Body: &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{eventlog.Text{Text: "Hi."}}}})
	conv.Append(eventlog.Event{Seq: 3, Turn: 1, Body: &eventlog.Reminder{Body: "s"}})
	got := conv.Reminders()
	if len(got) != 2 || got[0] != (reduce.Reminder{Reminder: reminder, Seq: 1, Tokens: budget.MessageOverhead + 10}) || got[1].Seq != 3 || got[1].Turn != 1 {
		t.Errorf("%+v", got)
	}
	if conv.Head() != 3 || conv.Tokens() != budget.MessageOverhead+1 || len(conv.Groups()) != 1 {
		t.Errorf("head %d, %d tokens, %d groups", conv.Head(), conv.Tokens(), len(conv.Groups()))
	}
	if conv.Gauge().Name() != gauge.Name() {
		t.Errorf("counted by %s", conv.Gauge().Name())
	}
}

// TestCountsAreKept: what was counted when an event was appended is not counted
// again, unless by another gauge.
func TestCountsAreKept(t *testing.T) {
	event := func(tokenizer string, counts ...uint32) eventlog.Event {
		return eventlog.Event{
			Seq: 1, Turn: 1, Tokens: eventlog.TokenCounts{Tokenizer: tokenizer, Blocks: counts},
			Body: &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{eventlog.Text{Text: "four"}, eventlog.Text{Text: "fours"}}},
		}
	}
	for name, c := range map[string]struct {
		event eventlog.Event
		want  uint64
	}{
		"not counted":         {event(""), 1 + 2},
		"counted":             {event("quarter", 100, 200), 300},
		"counted by another":  {event("heuristic", 100, 200), 1 + 2},
		"counted incorrectly": {event("quarter", 100), 1 + 2},
	} {
		conv := reduce.NewConversation(gauge)
		conv.Append(c.event)
		if got := conv.Tokens() - budget.MessageOverhead; got != c.want {
			t.Errorf("%s: %d tokens, want %d", name, got, c.want)
		}
	}
}

// TestCountsAreKeptAcrossFramings: what was counted without framing is not counted again
// for a format.
func TestCountsAreKeptAcrossFramings(t *testing.T) {
	framing := budget.Framing{Call: 60, Result: 18, EstimatedCall: 60, EstimatedResult: 18}
	framed := gauge.Framed("anthropic", framing)
	conv := reduce.NewConversation(framed)
	conv.Append(eventlog.Event{
		Seq: 1, Turn: 1, Tokens: eventlog.TokenCounts{Tokenizer: "quarter", Blocks: []uint32{100, 200}},
		Body: &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{eventlog.Text{Text: "four"}, eventlog.ToolCall{CallID: "c", Name: "f"}}},
	})
	conv.Append(eventlog.Event{
		Seq: 2, Turn: 1, Tokens: eventlog.TokenCounts{Tokenizer: "quarter", Blocks: []uint32{300}},
		Body: &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{eventlog.ToolResult{CallID: "c"}}},
	})
	want := 2*budget.MessageOverhead + 100 + 200 - budget.CallOverhead + framing.Call + 300 - budget.ResultOverhead + framing.Result
	if got := conv.Tokens(); got != uint64(want) {
		t.Errorf("%d tokens, want %d", got, want)
	}
}

// TestReasoningThatIsNotSent: a group's messages of the model are one, whose model is that of the first.
func TestReasoningThatIsNotSent(t *testing.T) {
	part := func(seq eventlog.Seq, model string) eventlog.Event {
		return eventlog.Event{Seq: seq, Turn: 1, Body: &eventlog.Message{
			Role: eventlog.RoleAssistant, Model: model, GroupID: "g", Blocks: []eventlog.Block{eventlog.Thinking{Text: "four", Signature: "eight by"}, eventlog.Text{Text: "four"}},
		}}
	}
	ofA := gauge.Sending(budget.SentReasoning, func(_ eventlog.Thinking, model string) (text, seal bool) { return model == "a", model == "a" })
	for _, c := range []struct {
		first, second string
		want          uint64
	}{{"a", "a", 2 + 1 + 2 + 1}, {"a", "b", 2 + 1 + 2 + 1}, {"b", "a", 1 + 1}, {"", "a", 1 + 1}} {
		conv := reduce.NewConversation(ofA)
		conv.Append(part(1, c.first))
		conv.Append(part(2, c.second))
		if got := conv.Tokens() - budget.MessageOverhead; got != c.want {
			t.Errorf("%q and %q: %d tokens, want %d", c.first, c.second, got, c.want)
		}
	}
}

const policiesMeet = `
	user: Run it.
	assistant: call c1 bash {} | call c2 bash {}
	tool: c1 @100 output | c2 @100 output
	assistant: call c3 bash {}
	tool: c3 @100 output
	assistant: *60 a long answer
	user: And again.
	assistant: *60 a long answer
`

// TestPoliciesDoNotMeet: one conversation serves requests with different policies,
// in any order, and each gets what it would get alone.
func TestPoliciesDoNotMeet(t *testing.T) {
	_, conv := conversation(t, policiesMeet)
	b := budget.Budget{Target: 700}
	policies := map[string]reduce.Policy{
		"even":     {Clipping: reduce.Clipping{MaxTokens: 60}, Collapse: reduce.Collapse{To: 0.5, LedgerShare: 0.1}},
		"tail":     {Clipping: reduce.Clipping{MaxTokens: 60, HeadTokens: 10, TailTokens: 40}, Collapse: reduce.Collapse{To: 0.5, LedgerShare: 0.1}},
		"no index": {Collapse: reduce.Collapse{To: 0.5, LedgerShare: 0.2}},
		"index":    {Collapse: reduce.Collapse{To: 0.5, LedgerShare: 0.1, IndexShare: 0.2}},
		"outline":  {ToolResults: reduce.ToolResults{Default: reduce.Retention{Turns: 1}, OutlineTokens: 50}, Cache: reduce.Cache{EvictEveryTurns: 1}},
		"stubs":    {ToolResults: reduce.ToolResults{Default: reduce.Retention{Turns: 1}}, Cache: reduce.Cache{EvictEveryTurns: 1}},
	}
	alone := map[string][]string{}
	for name, p := range policies {
		_, fresh := conversation(t, policiesMeet)
		alone[name] = viewOf(t, p, fresh, b)
	}
	for range 3 {
		for name, p := range policies { // in another order each time
			if got := viewOf(t, p, conv, b); strings.Join(got, "\n") != strings.Join(alone[name], "\n") {
				t.Fatalf("%s depends on what was assembled before:\n%s\n\nalone:\n%s", name, strings.Join(got, "\n"), strings.Join(alone[name], "\n"))
			}
		}
	}
}

func viewOf(t *testing.T, p reduce.Policy, conv *reduce.Conversation, b budget.Budget) []string {
	t.Helper()
	r, err := reduce.NewPipeline(p, conv).Run(b, reduce.State{}, reduce.Ask{})
	if err != nil {
		t.Fatal(err)
	}
	return reducetest.Bytes(r.View)
}

// TestTextsLeave: what was written for dropped results does not stay in memory.
func TestTextsLeave(t *testing.T) {
	policy := reducetest.Policy()
	policy.Cache.PaybackTurns = 0
	policy.Collapse.CutFrom = 0 // so that results gather, and are evicted, up to the target
	s := newSession()
	most := 0
	for _, e := range longSession(2000) {
		if err := s.append(e); err != nil {
			t.Fatal(err)
		}
		r, err := reduce.NewPipeline(policy, s.conv).Run(budget.Budget{Target: 8000}, s.state, reduce.Ask{})
		if err != nil {
			t.Fatal(err)
		}
		s.state = r.State
		most = max(most, reduce.TextsKept(s.conv))
	}
	if s.state.CollapsedThrough < 1900 || most < 10 || most > 100 {
		t.Errorf("collapsed through event %d; up to %d texts were kept", s.state.CollapsedThrough, most)
	}
}

// What is kept for budgets that differ each time does not grow with their number.
func TestTextsOfManyBudgetsAreBounded(t *testing.T) {
	s := newSession()
	for _, e := range longSession(400) {
		if err := s.append(e); err != nil {
			t.Fatal(err)
		}
	}
	empty, most := s.conv.Bytes(), 0
	for target := uint64(20_000); target > 2000; target -= 30 {
		if _, err := reduce.NewPipeline(reducetest.Policy(), s.conv).Run(budget.Budget{Target: target}, reduce.State{}, reduce.Ask{}); err != nil {
			t.Fatal(err)
		}
		most = max(most, s.conv.Bytes())
	}
	if most == empty || most > 2*empty+empty/4 {
		t.Errorf("%d bytes of events are held as %d", empty, most)
	}
}
