package assemble_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/contextd/contextd/cmd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/budget/bpe"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/reduce"
)

// benchTurn is what an agent's turn of three events adds: a call, a result of
// about 1 KiB and, every tenth turn, a word of the user.
func benchTurn(i int) []eventlog.Event {
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

func fill(b *testing.B, store eventlog.Store, events int) (next int) {
	b.Helper()
	encoding, err := bpe.Open(budget.TokenizerO200K)
	if err != nil {
		b.Fatal(err)
	}
	gauge := budget.NewAccountant(encoding)
	var batch []eventlog.Event
	n := 0
	push := func() {
		commit, err := store.Append(context.Background(), "s", eventlog.Batch{Events: batch})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := commit.Wait(context.Background()); err != nil {
			b.Fatal(err)
		}
		batch = nil
	}
	for ; n < events; next++ {
		for _, e := range benchTurn(next) {
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

func benchEngine(b *testing.B, store eventlog.Store) *assemble.Engine {
	b.Helper()
	models, err := budget.NewModels()
	if err != nil {
		b.Fatal(err)
	}
	return assemble.New(store, assemble.Options{
		Models: models, CacheSessions: 8,
		Clock: func() time.Time { return time.Unix(0, 0) },
		Gauges: func(name string) (budget.Accountant, error) {
			encoding, err := bpe.Open(name)
			if err != nil {
				return budget.Accountant{}, err
			}
			return budget.NewAccountant(encoding), nil
		},
	})
}

// BenchmarkAssemble measures an assembly in a session of so many events under a
// window of 32k tokens: cold, as the first after a start of the daemon, and warm,
// after one more turn was appended. The warm figure includes that append.
func BenchmarkAssemble(b *testing.B) {
	stores := map[string]func(b *testing.B) eventlog.Store{
		"memory": func(*testing.B) eventlog.Store { return memlog.New() },
		"disk": func(b *testing.B) eventlog.Store {
			store, err := disklog.Open(b.TempDir(), disklog.Options{})
			if err != nil {
				b.Fatal(err)
			}
			return store
		},
	}
	req := assemble.Request{
		SessionID: "s",
		Budget:    budget.Spec{MaxTokens: 32_768, Tokenizer: budget.TokenizerO200K},
		Policy:    assemble.Policy{Reduction: reduce.DefaultPolicy()},
	}
	for _, kind := range []string{"memory", "disk"} {
		for _, events := range []int{1_000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", kind, events), func(b *testing.B) {
				store := stores[kind](b)
				defer store.Close()
				next := fill(b, store, events)
				engine := benchEngine(b, store)
				if _, err := engine.Assemble(b.Context(), req); err != nil {
					b.Fatal(err)
				}
				b.Run("cold", func(b *testing.B) {
					for b.Loop() {
						if _, err := benchEngine(b, store).Assemble(b.Context(), req); err != nil {
							b.Fatal(err)
						}
					}
				})
				b.Run("warm", func(b *testing.B) {
					for b.Loop() {
						commit, err := store.Append(b.Context(), "s", eventlog.Batch{Events: benchTurn(next)})
						if err != nil {
							b.Fatal(err)
						}
						if _, err := commit.Wait(b.Context()); err != nil {
							b.Fatal(err)
						}
						next++
						if _, err := engine.Assemble(b.Context(), req); err != nil {
							b.Fatal(err)
						}
					}
				})
			})
		}
	}
}
