package assemble_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// boundModel plays a model whose provider binds reasoning to all that was before it: it signs with a hash of
// the request, and checks that each of its blocks comes back after the same.
type boundModel struct {
	name  string
	after map[string]string // signature → the lines of the request
	shown int               // blocks that came back
}

// takes checks a request.
func (m *boundModel) takes(t *rapid.T, sent []assemble.Message) {
	t.Helper()
	for i, line := range sent {
		var message struct {
			Content []struct{ Type, Signature string }
		}
		if json.Unmarshal(line.JSON, &message) != nil { // content may be a string
			continue
		}
		for _, block := range message.Content {
			if block.Type != "thinking" {
				continue
			}
			m.shown++
			if before, ok := m.after[block.Signature]; !ok || before != lines(sent[:i]) {
				t.Fatalf("message %d: the block is bound to a different conversation (known: %v):\n%s\nbut it was made after\n%s", i, ok, lines(sent[:i]), before)
			}
		}
	}
	var all [][]byte
	for _, line := range sent {
		all = append(all, line.JSON)
	}
	for _, v := range rules.Of("anthropic")(all) {
		t.Fatalf("%+v in\n%s", v, lines(sent))
	}
}

// answers is what the model says to a request.
func (m *boundModel) answers(sent []assemble.Message, blocks ...eventlog.Block) eventlog.Event {
	signature := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "seal %d", len(m.after)))
	m.after[signature] = lines(sent)
	blocks = append([]eventlog.Block{eventlog.Thinking{Text: "Hm.", Signature: signature}}, blocks...)
	return eventlog.Event{ID: signature, Body: &eventlog.Message{Role: eventlog.RoleAssistant, Model: m.name, Blocks: blocks}}
}

// TestBoundReasoning lets an agent work whose model takes its reasoning back only after what it followed,
// while its context is reduced in every way.
func TestBoundReasoning(t *testing.T) {
	shown := 0
	rapid.Check(t, func(t *rapid.T) {
		store := memlog.New()
		defer store.Close()
		push(t, store, "s", opening()...)
		engine, model := newEngine(t, store), &boundModel{name: "claude-opus-5-5", after: map[string]string{}}
		req := request()
		req.Budget.Format, req.Budget.InjectionReserve = "anthropic", 200
		req.Budget.MaxTokens = rapid.SampledFrom([]uint64{3_000, 8_000, 200_000}).Draw(t, "max_tokens")
		req.Policy.Projection.Name = rapid.SampledFrom([]string{"", "", projection.Full, projection.ReachabilityGC}).Draw(t, "projection")
		req.Policy.Reduction.ToolResults.Strict = req.Policy.Projection.Name == "" && rapid.Bool().Draw(t, "strict")
		if rapid.Bool().Draw(t, "keep_thinking") {
			req.Policy.Reduction.Thinking = reduce.Thinking{}
		}
		var seen []eventlog.Seq
		for n := range rapid.IntRange(5, 40).Draw(t, "turns") {
			with := req
			switch rapid.IntRange(0, 20).Draw(t, "what") {
			case 0:
				with.Injections = []render.Injection{{Name: "clock", Blocks: []eventlog.Block{eventlog.Text{Text: fmt.Sprint("It is ", n)}}}}
			case 1:
				ttl := uint32(2)
				push(t, store, "s", eventlog.Event{ID: fmt.Sprint("r", n), Body: &eventlog.Reminder{Body: fmt.Sprint("Mind step ", n), TTLTurns: &ttl}})
			case 2:
				engine = newEngine(t, store)
			case 3:
				with.Budget.MaxTokens += 1_000
			case 4:
				if _, _, err := engine.Compact(t.Context(), assemble.Compaction{SessionID: "s", Request: req, Strategy: reduce.Mask, KeepLastTurns: 1}, nil, marking(t, store, "s")); err != nil {
					t.Fatal(err)
				}
			case 5:
				if len(seen) > 0 { // a context of the past, which no model answers
					old := req
					old.AsOf = &seen[rapid.IntRange(0, len(seen)-1).Draw(t, "as_of")]
					model.takes(t, mustAssemble(t, engine, old).Messages)
				}
			case 6:
				push(t, store, "s", text(fmt.Sprint("u", n), eventlog.RoleUser, "Go on."))
			}
			out, err := engine.Assemble(t.Context(), with)
			var over *assemble.BudgetError
			if errors.As(err, &over) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			model.takes(t, out.Messages)
			seen = append(seen, out.AsOf)
			again := mustAssemble(t, newEngine(t, store), with)
			if again.ContextHash != out.ContextHash {
				t.Fatalf("another engine gives\n%s\nand not\n%s", lines(again.Messages), lines(out.Messages))
			}
			replay, err := engine.Replay(t.Context(), "s", out.Projection.ID)
			if err != nil || !replay.Same {
				t.Fatalf("the record is not rebuilt: %s, %v", replay.Difference, err)
			}
			call := fmt.Sprint("c", n)
			if rapid.IntRange(0, 9).Draw(t, "silent") == 0 {
				push(t, store, "s", model.answers(out.Messages), text(fmt.Sprint("n", n), eventlog.RoleUser, "You said nothing."))
				continue
			}
			push(t, store, "s", model.answers(out.Messages, eventlog.ToolCall{CallID: call, Name: "read", Arguments: `{"path":"a.go"}`}))
			push(t, store, "s", eventlog.Event{ID: "result of " + call, Body: &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{eventlog.ToolResult{
				CallID: call, ToolName: "read", Content: []eventlog.Block{eventlog.Text{Text: strings.Repeat(fmt.Sprint("line ", n, "\n"), rapid.IntRange(1, 200).Draw(t, "lines"))}},
			}}}})
		}
		shown += model.shown
	})
	if shown == 0 {
		t.Error("no reasoning was shown")
	}
}

// TestAContextReadsFewRecords: however often a context was made before.
func TestAContextReadsFewRecords(t *testing.T) {
	store := &countingStore{Store: memlog.New(), kind: "projection"}
	defer closeStore(t, store)
	model := &boundModel{name: "claude-opus-5-5", after: map[string]string{}}
	push(t, store, "s", append(opening(), model.answers(nil, eventlog.Text{Text: "Done."}))...)
	engine := newEngine(t, store)
	for range 50 {
		store.read = 0
		mustAssemble(t, engine, request())
	}
	if store.read == 0 || store.read > 5 {
		t.Errorf("%d records were read", store.read)
	}
}
