package assemble_test

import (
	"fmt"
	"testing"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/reduce"
)

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
				engine := newEngine(b, store)
				if _, err := engine.Assemble(b.Context(), req); err != nil {
					b.Fatal(err)
				}
				b.Run("cold", func(b *testing.B) {
					for b.Loop() {
						if _, err := newEngine(b, store).Assemble(b.Context(), req); err != nil {
							b.Fatal(err)
						}
					}
				})
				b.Run("warm", func(b *testing.B) {
					for b.Loop() {
						commit, err := store.Append(b.Context(), "s", eventlog.Batch{Events: turn(next)})
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
