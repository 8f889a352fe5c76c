package reduce_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/reduce"
)

// TestSessions assembles conversations of agents of every shape as they grow,
// under any policy and budget. What must hold, session.reduce checks.
func TestSessions(t *testing.T) { rapid.Check(t, holdSessions) }

func FuzzReduce(f *testing.F) {
	// The bytes are what the generators draw from.
	for seed := range byte(8) {
		entropy := make([]byte, 8<<10)
		for i := range entropy {
			entropy[i] = seed + byte(i*i>>3)
		}
		f.Add(entropy)
	}
	f.Fuzz(rapid.MakeFuzz(holdSessions))
}

func holdSessions(t *rapid.T) {
	policy, b := genPolicy().Draw(t, "policy"), genBudget().Draw(t, "budget")
	s := newSession()
	var at time.Duration
	grow(t, s, policy, b, func() eventlog.Event { return genEvent(t, s.log.head, &at) })
}

// TestOddLogs does the same with logs whose texts, JSON and times are anything
// that a store accepts.
func TestOddLogs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy, b := genPolicy().Draw(t, "policy"), genBudget().Draw(t, "budget")
		s := newSession()
		grow(t, s, policy, b, func() eventlog.Event {
			return logtest.GenEvent(s.log.head, "e").Draw(t, "event")
		})
	})
}

func grow(t *rapid.T, s *session, policy reduce.Policy, b budget.Budget, next func() eventlog.Event) {
	for range rapid.IntRange(1, 60).Draw(t, "events") {
		if err := s.append(next()); err != nil {
			t.Fatalf("the generator drew what the log refuses: %v", err)
		}
		if rapid.IntRange(0, 3).Draw(t, "assembles") > 0 {
			continue
		}
		if rapid.IntRange(0, 3).Draw(t, "roots change") == 0 {
			s.roots = rapid.SliceOfN(rapid.SampledFrom([]string{"parseConfig", "and then", "1234567", "日本"}), 0, 2).Draw(t, "roots")
		}
		now := b
		// Reserves differ from request to request: the target does, not the decisions.
		now.Target -= rapid.SampledFrom([]uint64{0, 0, 0, 7}).Draw(t, "reserve")
		ask := genAsk(now).Draw(t, "ask")
		r, err := s.reduce(t, policy, now, ask) // refusals are checked there
		if err == nil && rapid.IntRange(0, 2).Draw(t, "summarizes") == 0 {
			s.summarize(t, policy, now, r)
		}
	}
}

// TestWhatCanBeReducedFits: where single messages are small, but for results and
// the first user message, which can be cut, no assembly is refused.
func TestWhatCanBeReducedFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy, b := genPolicy().Draw(t, "policy"), genBudget().Draw(t, "budget")
		policy.Window.StrictAnchor = false
		for tool, rule := range policy.ToolResults.ByTool {
			rule.Never = false
			policy.ToolResults.ByTool[tool] = rule
		}
		b.Target = max(b.Target, 2500)
		s := newSession()
		var at time.Duration
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			e := genEvent(t, s.log.head, &at)
			if m, ok := e.Body.(*eventlog.Message); ok {
				e.Body = tame(m, s.log.firstUser == 0 || len(s.log.humans) == 0 && !e.Injected())
				e.Tokens = eventlog.TokenCounts{}
			}
			if err := s.append(e); err != nil {
				t.Fatalf("the generator drew what the log refuses: %v", err)
			}
			if _, err := s.reduce(t, policy, b, reduce.Ask{Reserved: rapid.Uint64Range(0, 60).Draw(t, "reminders")}); err != nil {
				t.Fatalf("refused: %v", err)
			}
		}
	})
}

// tame makes a message small that nothing could shrink.
func tame(m *eventlog.Message, first bool) *eventlog.Message {
	out := eventlog.Message{Role: m.Role, Model: m.Model}
	for _, b := range m.Blocks {
		switch t := b.(type) {
		case eventlog.Text:
			if !first || m.Role != eventlog.RoleUser {
				t.Text = start(t.Text)
			}
			b = t
		case eventlog.Thinking:
			t.Text, t.EncryptedContent = start(t.Text), start(t.EncryptedContent)
			b = t
		case eventlog.ToolResult:
			text := reduce.BodyText(t)
			t.Content = []eventlog.Block{eventlog.Text{Text: text}}
			b = t
		}
		out.Blocks = append(out.Blocks, b)
	}
	return &out
}

func start(s string) string { return strings.ToValidUTF8(s[:min(len(s), 100)], "") }
