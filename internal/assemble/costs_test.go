package assemble_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/costtest"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/reduce"
)

// smallTurn is a call with a short result: two thousand of them take 150,000 tokens.
func smallTurn(i int) []eventlog.Event {
	id := fmt.Sprintf("call_%d", i)
	body := fmt.Sprintf("%4d\tfunc handler%d(ctx context.Context) error { return step(ctx) }\n%4d\tfunc closer%d() error { return nil }\n", i, i, i+1, i)
	message := func(suffix string, role eventlog.Role, blocks ...eventlog.Block) eventlog.Event {
		return eventlog.Event{ID: id + suffix, Body: &eventlog.Message{Role: role, Blocks: blocks}}
	}
	return []eventlog.Event{
		message("-call", eventlog.RoleAssistant, eventlog.ToolCall{CallID: id, Name: "read_file", Arguments: fmt.Sprintf(`{"path":"pkg/mod%d/handler.go"}`, i)}),
		message("-result", eventlog.RoleTool, eventlog.ToolResult{CallID: id, ToolName: "read_file", Content: []eventlog.Block{eventlog.Text{Text: body}}}),
	}
}

// wideSession is a session of which 2,000 groups are shown, and narrowSession one of so many events of
// which the newest are.
func wideSession(tb testing.TB) (store eventlog.Store, grow func(), req assemble.Request) {
	store = memlog.New()
	push(tb, store, "s", opening()...)
	next := 0
	grow = func() {
		push(tb, store, "s", smallTurn(next)...)
		next++
	}
	for range 2_000 {
		grow()
	}
	return store, grow, windowOf(250_000)
}

func narrowSession(tb testing.TB, events int) (store eventlog.Store, grow func(), req assemble.Request) {
	store = memlog.New()
	next := fill(tb, store, events)
	return store, func() {
		push(tb, store, "s", turn(next)...)
		next++
	}, windowOf(32_768)
}

func windowOf(tokens uint64) assemble.Request {
	return assemble.Request{
		SessionID: "s",
		Budget:    budget.Spec{MaxTokens: tokens, Tokenizer: budget.TokenizerO200K},
		Policy:    assemble.Policy{Reduction: reduce.DefaultPolicy()},
	}
}

// oneGroup is a session whose calls all share a group_id, and none of which is answered.
func oneGroup(tb testing.TB) (store eventlog.Store, grow func(), req assemble.Request) {
	store = memlog.New()
	push(tb, store, "s", opening()...)
	for i := range 1_000 {
		id := fmt.Sprintf("call_%d", i)
		push(tb, store, "s", eventlog.Event{ID: id, Body: &eventlog.Message{
			Role: eventlog.RoleAssistant, GroupID: "all", Blocks: []eventlog.Block{eventlog.ToolCall{CallID: id, Name: "read_file", Arguments: `{}`}},
		}})
	}
	req = windowOf(250_000)
	req.Budget.Format = "anthropic"
	return store, nil, req
}

// wideTurns is a session of two turns with 500 calls each, with the same call ids in both, and reasoning
// before each. All results are the same and old, so that all of them are edited.
func wideTurns(tb testing.TB) (store eventlog.Store, grow func(), req assemble.Request) {
	store = memlog.New()
	push(tb, store, "s", opening()...)
	for _, turn := range []string{"a", "b"} {
		m := &eventlog.Message{Role: eventlog.RoleAssistant}
		results := &eventlog.Message{Role: eventlog.RoleTool}
		for i := range 500 {
			id := fmt.Sprintf("call_%d", i)
			m.Blocks = append(m.Blocks, eventlog.Thinking{Text: "hm"}, eventlog.ToolCall{CallID: id, Name: "read_file", Arguments: `{}`})
			results.Blocks = append(results.Blocks, eventlog.ToolResult{CallID: id, Content: []eventlog.Block{eventlog.Text{Text: strings.Repeat("a line of the file\n", 20)}}})
		}
		push(tb, store, "s", eventlog.Event{ID: turn, Body: m}, eventlog.Event{ID: turn + "-results", Body: results})
	}
	for i := range 8 {
		push(tb, store, "s", smallTurn(1_000_000+i)...)
	}
	req = windowOf(250_000)
	req.Budget.Format = "openai_responses"
	req.Preview = true // each is the first
	return store, nil, req
}

// polling is a session of an agent that makes one call again and again, and gets one answer.
func polling(tb testing.TB) (store eventlog.Store, grow func(), req assemble.Request) {
	store = memlog.New()
	push(tb, store, "s", opening()...)
	for i := range 500 {
		id := fmt.Sprintf("call_%d", i)
		push(tb, store, "s",
			eventlog.Event{ID: id, Body: &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{eventlog.ToolCall{CallID: id, Name: "status", Arguments: `{}`}}}},
			eventlog.Event{ID: id + "-result", Body: &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{eventlog.ToolResult{CallID: id, Content: []eventlog.Block{eventlog.Text{Text: strings.Repeat("still running, nothing to report\n", 20)}}}}}},
		)
	}
	req = windowOf(16_000)
	req.Preview = true // each is the first
	return store, nil, req
}

// manyPieces is a session of 1,000 reminders and one message of 1,000 blocks.
func manyPieces(tb testing.TB) (store eventlog.Store, grow func(), req assemble.Request) {
	store = memlog.New()
	push(tb, store, "s", opening()...)
	m := &eventlog.Message{Role: eventlog.RoleAssistant}
	for i := range 1_000 {
		m.Blocks = append(m.Blocks, eventlog.Thinking{Text: fmt.Sprintf("thought %d", i)})
		push(tb, store, "s", eventlog.Event{ID: fmt.Sprint(i), Body: &eventlog.Reminder{Body: fmt.Sprintf("reminder %d", i)}})
	}
	m.Blocks = append(m.Blocks, eventlog.Text{Text: "said"})
	push(tb, store, "s", eventlog.Event{ID: "message", Body: m})
	req = windowOf(250_000)
	req.Budget.Format = "openai_chat" // shows no reasoning
	return store, nil, req
}

// masking is a session in which callers mask each result by a separate compaction.
func masking(tb testing.TB) (store eventlog.Store, grow func(), req assemble.Request) {
	store = memlog.New()
	push(tb, store, "s", opening()...)
	for i := range 1_000 {
		events := smallTurn(i)
		push(tb, store, "s", append(events, eventlog.Event{ID: fmt.Sprint(i), Body: &eventlog.Compaction{
			Decision: &eventlog.CompactionDecision{Masked: []eventlog.Place{{Seq: eventlog.Seq(4 + 3*i)}}},
		}})...)
	}
	req = windowOf(250_000)
	req.Preview = true // each is the first
	return store, nil, req
}

// monologue is a session in which a human says much and nobody answers.
func monologue(tb testing.TB) (store eventlog.Store, grow func(), req assemble.Request) {
	store = memlog.New()
	push(tb, store, "s", opening()...)
	for i := range 2_000 {
		push(tb, store, "s", text(fmt.Sprint(i), eventlog.RoleUser, fmt.Sprintf("and then there is number %d, which is as important", i)))
	}
	req = windowOf(16_000)
	req.Preview = true // each is the first
	return store, nil, req
}

// TestCosts holds assemblies to testdata/costs.txt.
func TestCosts(t *testing.T) {
	type session func(testing.TB) (eventlog.Store, func(), assemble.Request)
	events := func(n int) session {
		return func(tb testing.TB) (eventlog.Store, func(), assemble.Request) { return narrowSession(tb, n) }
	}
	warm := func(of session) func(testing.TB) func() {
		return func(tb testing.TB) func() {
			store, grow, req := of(tb)
			engine := newEngine(tb, store)
			return func() {
				grow()
				mustAssemble(tb, engine, req)
			}
		}
	}
	cold := func(of session) func(testing.TB) func() {
		return func(tb testing.TB) func() {
			store, _, req := of(tb)
			mustAssemble(tb, newEngine(tb, store), req)
			return func() { mustAssemble(tb, newEngine(tb, store), req) }
		}
	}
	explain := func(of session) func(testing.TB) func() {
		return func(tb testing.TB) func() {
			store, _, req := of(tb)
			engine := newEngine(tb, store)
			mustAssemble(tb, engine, req)
			return func() {
				if _, err := engine.Explain(tb.Context(), "s", assemble.Asked{}, "thought", req); err != nil {
					tb.Fatal(err)
				}
			}
		}
	}
	costtest.Hold(t, "testdata/costs.txt",
		costtest.Operation{Name: "append a turn, assemble warm: 2,000 groups shown", Start: warm(wideSession)},
		costtest.Operation{Name: "append a turn, assemble warm: 1,000 events", Start: warm(events(1_000))},
		costtest.Operation{Name: "append a turn, assemble warm: 20,000 events", Start: warm(events(20_000))},
		costtest.Operation{Name: "assemble cold: 1,000 events", Start: cold(events(1_000))},
		costtest.Operation{Name: "assemble cold: 20,000 events", Start: cold(events(20_000))},
		costtest.Operation{Name: "assemble cold: a group of 1,000 messages", Start: cold(oneGroup)},
		costtest.Operation{Name: "assemble for the first time: turns of 500 results", Start: cold(wideTurns)},
		costtest.Operation{Name: "assemble for the first time: 500 equal results", Start: cold(polling)},
		costtest.Operation{Name: "assemble for the first time: 1,000 compactions that mask", Start: cold(masking)},
		costtest.Operation{Name: "assemble for the first time: 2,000 messages of a human", Start: cold(monologue), Counted: 10},
		costtest.Operation{Name: "explain: 1,000 reminders, a message of 1,000 blocks", Start: explain(manyPieces)},
	)
}
