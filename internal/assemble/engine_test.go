package assemble_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/budget/bpe"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// turn is what an agent's turn adds: a call, a result of about 1 KiB and, every
// tenth turn, a word of the user before it.
func turn(i int) []eventlog.Event {
	id := fmt.Sprintf("call_%d", i)
	var body strings.Builder
	for line := range 16 {
		fmt.Fprintf(&body, "%4d\tfunc handler%d(ctx context.Context) error { return step%d(ctx) }\n", line, i, line)
	}
	message := func(suffix string, role eventlog.Role, blocks ...eventlog.Block) eventlog.Event {
		return eventlog.Event{ID: id + suffix, Body: &eventlog.Message{Role: role, Blocks: blocks}}
	}
	events := []eventlog.Event{
		message("-call", eventlog.RoleAssistant,
			eventlog.Text{Text: "I look at the next module."},
			eventlog.ToolCall{CallID: id, Name: "read_file", Arguments: fmt.Sprintf(`{"path":"pkg/mod%d/handler.go"}`, i)}),
		message("-result", eventlog.RoleTool, eventlog.ToolResult{CallID: id, ToolName: "read_file", Content: []eventlog.Block{eventlog.Text{Text: body.String()}}}),
	}
	if i%10 == 0 {
		events = append([]eventlog.Event{message("-user", eventlog.RoleUser, eventlog.Text{Text: "Go on with the next ones."})}, events...)
	}
	return events
}

func fill(tb rapid.TB, store eventlog.Store, events int) (next int) {
	tb.Helper()
	encoding, err := bpe.Open(budget.TokenizerO200K)
	if err != nil {
		tb.Fatal(err)
	}
	gauge := budget.NewGauge(encoding)
	var batch []eventlog.Event
	n := 0
	push := func() {
		commit, err := store.Append(context.Background(), "s", eventlog.Batch{Events: batch})
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := commit.Wait(context.Background()); err != nil {
			tb.Fatal(err)
		}
		batch = nil
	}
	for ; n < events; next++ {
		for _, e := range turn(next) {
			e.Tokens = gauge.CountEvent(e)
			batch = append(batch, e)
			n++
		}
		if len(batch) > 1000 {
			push()
		}
	}
	push()
	return next
}

// epoch is the time in all tests.
func epoch() time.Time { return time.Unix(0, 0) }

func gauges(name string) (budget.Gauge, error) {
	if name == budget.TokenizerHeuristic {
		return budget.NewGauge(budget.Heuristic{}), nil
	}
	encoding, err := bpe.Open(name)
	if err != nil {
		return budget.Gauge{}, err
	}
	return budget.NewGauge(encoding), nil
}

func newEngine(tb rapid.TB, store eventlog.Store) *assemble.Engine {
	tb.Helper()
	models, err := budget.NewModels()
	if err != nil {
		tb.Fatal(err)
	}
	return assemble.New(store, assemble.Options{Models: models, CacheSessions: 8, Clock: epoch, Gauges: gauges})
}

// onBothStores runs a test over each store; reopen closes the disk store and
// opens it again, and returns the memory store as it is.
func onBothStores(t *testing.T, test func(t *testing.T, store eventlog.Store, reopen func() eventlog.Store)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		store := memlog.New()
		defer closeStore(t, store)
		test(t, store, func() eventlog.Store { return store })
	})
	t.Run("disk", func(t *testing.T) {
		dir := t.TempDir()
		open := func() eventlog.Store {
			store, err := disklog.Open(dir, disklog.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return store
		}
		store := open()
		defer func() { closeStore(t, store) }()
		test(t, store, func() eventlog.Store {
			closeStore(t, store)
			store = open()
			return store
		})
	})
}

func closeStore(t *testing.T, store eventlog.Store) {
	t.Helper()
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

func push(tb rapid.TB, store eventlog.Store, id string, events ...eventlog.Event) {
	tb.Helper()
	commit, err := store.Append(context.Background(), id, eventlog.Batch{Events: events})
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := commit.Wait(context.Background()); err != nil {
		tb.Fatal(err)
	}
}

func text(id string, role eventlog.Role, s string) eventlog.Event {
	return eventlog.Event{ID: id, Body: &eventlog.Message{Role: role, Blocks: []eventlog.Block{eventlog.Text{Text: s}}}}
}

// opening is what every test session begins with.
func opening() []eventlog.Event {
	return []eventlog.Event{
		text("system", eventlog.RoleSystem, "You are a careful engineer."),
		text("user", eventlog.RoleUser, "Find the handler that leaks."),
	}
}

// tight is a budget that the test sessions outgrow after some turns.
var tight = budget.Spec{MaxTokens: 6_000, Tokenizer: budget.TokenizerO200K}

func request() assemble.Request {
	return assemble.Request{SessionID: "s", Budget: tight, Policy: assemble.Policy{Reduction: reducetest.Policy()}}
}

func mustAssemble(tb rapid.TB, engine *assemble.Engine, req assemble.Request) *assemble.Context {
	tb.Helper()
	out, err := engine.Assemble(context.Background(), req)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// lines are the JSON lines of a context's messages.
func lines(messages []assemble.Message) string {
	var out strings.Builder
	for _, m := range messages {
		out.Write(m.JSON)
		out.WriteByte('\n')
	}
	return out.String()
}
