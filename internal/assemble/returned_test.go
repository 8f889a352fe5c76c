package assemble_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/render/rules"
)

// TestReasoningIsReturned replays a session under models that want reasoning back and others: the former get all of what is
// shown, whatever its age, and the latter none, as their APIs refuse it. A session may change between them.
func TestReasoningIsReturned(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	no := false
	models, err := budget.NewModels(budget.Override{Name: "deepseek-*", ReturnReasoning: &no})
	if err != nil {
		t.Fatal(err)
	}
	otherwise := assemble.New(store, assemble.Options{Models: models, CacheSessions: 8, Clock: epoch, Gauges: gauges})
	push(t, store, "s", opening()...)
	chat := func(model string) *assemble.Context {
		req := request()
		req.Budget = budget.Spec{Model: model, MaxTokens: 12_000, Tokenizer: budget.TokenizerO200K, Format: "openai_chat"}
		cache := &req.Policy.Reduction.Cache
		cache.EvictEveryTurns, cache.ClearAtLeastTokens, cache.TTL = 1, 0, 0
		out := mustAssemble(t, engine, req)
		var all [][]byte
		for _, m := range out.Messages {
			all = append(all, m.JSON)
		}
		check, wants := rules.Of("openai_chat"), strings.HasPrefix(model, "deepseek")
		if wants {
			check = rules.OfReturning("openai_chat")
		}
		for _, v := range check(all) {
			t.Fatalf("%s: %v", model, v)
		}
		shown := lines(out.Messages)
		for i := range 40 {
			called, thought := strings.Contains(shown, fmt.Sprintf(`"id":"call_%d"`, i)), strings.Contains(shown, fmt.Sprintf("module %d is next.", i))
			if thought != (called && wants) {
				t.Fatalf("%s: the call of turn %d is shown: %t, its reasoning: %t", model, i, called, thought)
			}
		}
		// A record is of the models that it was made with.
		for _, e := range []*assemble.Engine{engine, otherwise} {
			if replay, err := e.Replay(t.Context(), "s", out.Projection.ID); err != nil || !replay.Same {
				t.Fatalf("%s: a replay differs: %s, %v", model, replay.Difference, err)
			}
		}
		again := mustAssemble(t, newEngine(t, store), req)
		if again.PrefixHash != out.PrefixHash {
			t.Fatalf("%s: an engine that knows nothing of the session gives other bytes", model)
		}
		return out
	}
	old := 0
	for i := range 40 {
		events := turn(i)
		m := events[len(events)-2].Body.(*eventlog.Message)
		thought := eventlog.Thinking{Text: fmt.Sprintf("The module %d is next.", i)}
		m.Model = "deepseek-flash"
		if i%3 == 0 { // also where another provider takes it only after what it followed
			m.Model, thought.Signature = "claude-opus-5-5", "c2ln"
		}
		m.Blocks = append([]eventlog.Block{thought}, m.Blocks...)
		push(t, store, "s", events...)
		old = max(old, strings.Count(lines(chat("deepseek-flash").Messages), "is next."))
		if i%7 == 0 {
			chat("gpt-5")
		}
	}
	if old < 9 { // more than the 7 turns for which reasoning stays by default
		t.Errorf("the reasoning of at most %d turns was shown at once", old)
	}
}

// TestReasoningOfAnotherProviderTakesNoRoom: after a change of the model a context is not reduced for sealed reasoning that is
// not sent.
func TestReasoningOfAnotherProviderTakesNoRoom(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	for format, room := range map[string]bool{"anthropic": false, "openai_chat": true, "openai_responses": true, "gemini": true, "": false} {
		session := "of " + format
		push(t, store, session, opening()...)
		for i := range 12 {
			events := turn(i)
			m := events[len(events)-2].Body.(*eventlog.Message)
			m.Model = "claude-opus-4-8"
			m.Blocks = append([]eventlog.Block{eventlog.Thinking{Text: "hm", Signature: strings.Repeat("c2ln", 2500)}}, m.Blocks...)
			push(t, store, session, events...)
		}
		req := request()
		req.SessionID = session
		req.Budget = budget.Spec{MaxTokens: 16_000, Tokenizer: budget.TokenizerO200K, Format: format}
		out := mustAssemble(t, engine, req)
		if whole := out.Projection.After.CollapsedThrough == 0; whole != room {
			t.Errorf("%q: nothing collapsed is %t, want %t: %+v", format, whole, room, out.Budget)
		}
		if out.Budget.Projected > out.Budget.Target {
			t.Errorf("%q: over the budget: %+v", format, out.Budget)
		}
	}
}

// TestSealOfAHost: a host's seals are shown to models of the maker that made them alone, however a session changes between
// models, and replays and other engines give the same bytes.
func TestSealOfAHost(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	push(t, store, "s", opening()...)
	for i := range 12 {
		events := turn(i)
		m := events[len(events)-2].Body.(*eventlog.Message)
		m.Model = "google/gemini-3-pro"
		m.Blocks = append([]eventlog.Block{eventlog.Thinking{Text: "hm", Signature: `{"reasoning_details":[{"type":"reasoning.encrypted","data":"ZA=="}]}`}}, m.Blocks...)
		push(t, store, "s", events...)
		for model, sealed := range map[string]bool{"google/gemini-3-flash": true, "openai/gpt-5": false, "": true} {
			req := request()
			req.Budget = budget.Spec{Model: model, MaxTokens: 12_000, Tokenizer: budget.TokenizerO200K, Format: "openai_chat"}
			out := mustAssemble(t, engine, req)
			shown := lines(out.Messages)
			if calls, seals := strings.Count(shown, `"tool_calls":`), strings.Count(shown, `"reasoning_details":`); calls == 0 || sealed && seals != calls || !sealed && seals > 0 {
				t.Fatalf("turn %d, %q: %d of %d messages with calls have their seal", i, model, seals, calls)
			}
			if replay, err := engine.Replay(t.Context(), "s", out.Projection.ID); err != nil || !replay.Same {
				t.Fatalf("turn %d, %q: a replay differs: %s, %v", i, model, replay.Difference, err)
			}
			if again := mustAssemble(t, newEngine(t, store), req); again.PrefixHash != out.PrefixHash {
				t.Fatalf("turn %d, %q: an engine that knows nothing of the session gives other bytes", i, model)
			}
		}
	}
}
