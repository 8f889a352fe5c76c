package projection_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// genTurns draws what a user and a model of one provider say, with parallel calls and
// reasoning that is sealed now and then.
func genTurns(t *rapid.T, model string, seals ...eventlog.Thinking) []eventlog.Event {
	var all []eventlog.Event
	say := func(m *eventlog.Message) {
		all = append(all, eventlog.Event{ID: fmt.Sprintf("e%d", len(all)+1), Body: m})
	}
	for n := range rapid.IntRange(1, 12).Draw(t, "messages") {
		if n == 0 || rapid.IntRange(0, 4).Draw(t, "user") == 0 {
			say(&eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: fmt.Sprintf("request %d", n)}}})
		}
		m := &eventlog.Message{Role: eventlog.RoleAssistant, Model: model}
		if rapid.Bool().Draw(t, "sealed") {
			thought := rapid.SampledFrom(seals).Draw(t, "seal")
			thought.Text = fmt.Sprintf("thought %d", n)
			m.Blocks = append(m.Blocks, thought)
		}
		if rapid.IntRange(0, 3).Draw(t, "speaks") == 0 {
			m.Blocks = append(m.Blocks, eventlog.Text{Text: "I try."})
		}
		answers := &eventlog.Message{Role: eventlog.RoleTool}
		for i := range rapid.IntRange(1, 3).Draw(t, "calls") {
			id := fmt.Sprintf("c%d.%d", n, i)
			m.Blocks = append(m.Blocks, genCall(t, id))
			answers.Blocks = append(answers.Blocks, eventlog.ToolResult{
				CallID: id, IsError: rapid.IntRange(0, 2).Draw(t, "failed") > 0,
				Content: []eventlog.Block{eventlog.Text{Text: reducetest.Lines(rapid.SampledFrom([]int{2, 40}).Draw(t, "lines"), id)}},
			})
		}
		say(m)
		say(answers)
	}
	return all
}

// genAnyPolicy draws a policy with options under which it does as much as possible.
func genAnyPolicy() *rapid.Generator[projection.Options] {
	none := uint32(0)
	one := uint32(1)
	return rapid.SampledFrom([]projection.Options{
		{Name: projection.CleanToolRepair, KeepLast: 1},
		{Name: projection.SquashFailed, KeepLast: 1},
		{Name: projection.SummaryPrefix, KeepLast: 1, Summary: "They worked."},
		{Name: projection.ReachabilityGC, KeepLast: 1, RootWindow: &one, MinChars: &none, ClearAtLeastTokens: &none},
		{Name: projection.CustomExpression, KeepLast: 1, Expression: `false`},
		{Name: projection.CustomExpression, KeepLast: 1, Expression: `results > 1 ? "drop" : "stub"`},
	})
}

// checkAccepted checks that a provider accepts each request of conversations with a model under any policy.
// full is what the log says, seen what the model is shown.
func checkAccepted(t *testing.T, model string, seals []eventlog.Thinking, accepts func(t fataler, full, seen []reducetest.Shown)) {
	rapid.Check(t, func(t *rapid.T) {
		o := genAnyPolicy().Draw(t, "policy")
		policy, err := projection.New(o)
		if err != nil {
			t.Fatalf("%v", err)
		}
		s := newSession()
		for _, e := range genTurns(t, model, seals...) {
			if err := s.append(e); err != nil {
				t.Fatalf("%v", err)
			}
			if e.Body.(*eventlog.Message).Role == eventlog.RoleAssistant {
				continue
			}
			now, err := s.request(t, o, policy, budget.Budget{})
			if err != nil {
				t.Fatalf("%v", err)
			}
			accepts(t, reducetest.Show(now.view), reducetest.Show(now.applied.View))
		}
	})
}

// lastTurn are the messages after the newest text of a user.
func lastTurn(all []reducetest.Shown) []reducetest.Shown {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Role == eventlog.RoleUser {
			return all[i+1:]
		}
	}
	return all
}

// sealedIn are the assistant messages with sealed reasoning.
func sealedIn(all []reducetest.Shown) []string {
	var out []string
	for _, m := range all {
		if slices.ContainsFunc(m.Blocks, isSealed) {
			out = append(out, m.Bytes())
		}
	}
	return out
}

func isSealed(b eventlog.Block) bool {
	t, ok := b.(eventlog.Thinking)
	return ok && t.Sealed()
}

// TestAnthropicAccepts: in the open turn, all thinking comes back with the message that it began. Thinking
// of other turns that comes back is unchanged.
func TestAnthropicAccepts(t *testing.T) {
	seals := []eventlog.Thinking{{Signature: "s"}, {RedactedData: "r"}}
	checkAccepted(t, "claude-x", seals, func(t fataler, full, seen []reducetest.Shown) {
		if want, got := sealedIn(lastTurn(full)), sealedIn(lastTurn(seen)); !slices.Equal(want, got) {
			t.Fatalf("the open turn thought\n%s\nand comes back with\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
		}
		checkAsSaid(t, full, seen)
	})
}

// TestOpenAIAccepts: reasoning comes back with the items after it, and those come back with their
// reasoning.
func TestOpenAIAccepts(t *testing.T) {
	checkAccepted(t, "gpt-x", []eventlog.Thinking{{EncryptedContent: "e"}}, checkAsSaid)
}

// TestGeminiAccepts: every signed call of the current turn comes back unchanged.
func TestGeminiAccepts(t *testing.T) {
	checkAccepted(t, "gemini-x", []eventlog.Thinking{{Signature: "s"}}, func(t fataler, full, seen []reducetest.Shown) {
		here := sealedIn(seen)
		for _, m := range sealedIn(lastTurn(full)) {
			if !slices.Contains(here, m) {
				t.Fatalf("the current turn comes back without %s", m)
			}
		}
		checkAsSaid(t, full, seen)
	})
}

// TestUnknownProviderAccepts: reasoning sealed by an unknown provider comes back with unchanged results.
func TestUnknownProviderAccepts(t *testing.T) {
	seals := []eventlog.Thinking{{Signature: "s"}, {EncryptedContent: "e", Signature: "s"}}
	checkAccepted(t, "other", seals, func(t fataler, full, seen []reducetest.Shown) {
		if want, got := sealedIn(lastTurn(full)), sealedIn(lastTurn(seen)); !slices.Equal(want, got) {
			t.Fatalf("the open turn thought\n%s\nand comes back with\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
		}
		checkAsSaid(t, full, seen)
		said := reducetest.BytesOf(full)
		for i, m := range seen {
			if m.Group != nil && m.Group.Sealed && m.Dropped == nil && !slices.Contains(said, m.Bytes()) {
				t.Fatalf("message %d was not said so: %s", i, m.Bytes())
			}
		}
	})
}

// checkAsSaid checks that no assistant message was changed.
func checkAsSaid(t fataler, full, seen []reducetest.Shown) {
	said := reducetest.BytesOf(full)
	for _, m := range seen {
		if m.Role == eventlog.RoleAssistant && !slices.Contains(said, m.Bytes()) {
			t.Fatalf("nobody said %s", m.Bytes())
		}
	}
}

// TestSafetyIsNoExcuse: what a provider allows to be dropped is dropped. Under an expression that drops
// everything, a group with a large result stays unchanged only if a rule demands it.
func TestSafetyIsNoExcuse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := rapid.SampledFrom([]string{"claude-x", "gpt-x", "gemini-x", "other"}).Draw(t, "model")
		seal := eventlog.Thinking{Signature: "s"}
		if model == "gpt-x" {
			seal = eventlog.Thinking{EncryptedContent: "e"}
		}
		o := projection.Options{Name: projection.CustomExpression, KeepLast: 1, Expression: "false"}
		policy, err := projection.New(o)
		if err != nil {
			t.Fatalf("%v", err)
		}
		s := newSession()
		if err := s.append(genTurns(t, model, seal)...); err != nil {
			t.Fatalf("%v", err)
		}
		now, err := s.request(t, o, policy, budget.Budget{})
		if err != nil {
			t.Fatalf("%v", err)
		}
		blocked := false
		for i, v := 0, now.applied.View; i < v.Len()-1; i++ {
			g := v.Group(i)
			if g.Anchor || len(g.Calls) == 0 || g.Tokens < 300 {
				continue
			}
			whole := mayLeave(o, now.view, i, true)
			blocked = blocked || !whole
			if left := v.Dropped(i) != nil; left != whole {
				t.Fatalf("the group at %d left: %v; it may: %v", g.First, left, whole)
			}
			if v.Dropped(i) == nil && mayChange(v, i) && len(v.Edits(i)) == 0 {
				t.Fatalf("the group at %d stays as it is", g.First)
			}
		}
		if blocked && !now.applied.SafetyBlocked {
			t.Fatalf("something was blocked, and nobody says so")
		}
	})
}

// TestRawFallback: the policy applies fully or not at all, and its decisions are kept.
func TestRawFallback(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := genAnyPolicy().Draw(t, "policy")
		plain, err := projection.New(o)
		if err != nil {
			t.Fatalf("%v", err)
		}
		o.RawFallback = true
		policy, err := projection.New(o)
		if err != nil {
			t.Fatalf("%v", err)
		}
		s := newSession()
		for _, e := range genTurns(t, "claude-x", eventlog.Thinking{Signature: "s"}) {
			if err := s.append(e); err != nil {
				t.Fatalf("%v", err)
			}
			before := s.shown
			now, err := s.request(t, o, policy, budget.Budget{})
			if err != nil {
				t.Fatalf("%v", err)
			}
			want := plain.Apply(now.view, s.conv.Turns(), before)
			if !want.SafetyBlocked {
				if !reflect.DeepEqual(now.applied, want) {
					t.Fatalf("nothing was blocked, and yet\n%s", linesOf(now.applied.View))
				}
				continue
			}
			if !reflect.DeepEqual(now.applied.View, now.view) || !reflect.DeepEqual(now.applied.State, before) || now.applied.Reason != want.Reason || !now.applied.SafetyBlocked {
				t.Fatalf("%q, and yet\n%s", want.Reason, linesOf(now.applied.View))
			}
		}
	})
}
