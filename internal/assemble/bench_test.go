package assemble_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/reduce"
)

// BenchmarkAssemble measures an assembly in a session of so many events under a
// window of 32k tokens: cold, as the first after a start of the daemon, and warm,
// after one more turn was appended. The warm figure includes that append; the median is of the
// assemblies alone, of which one in many cuts.
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
					var spent []time.Duration
					for b.Loop() {
						push(b, store, "s", turn(next)...)
						next++
						start := time.Now()
						mustAssemble(b, engine, req)
						spent = append(spent, time.Since(start))
					}
					slices.Sort(spent)
					b.ReportMetric(float64(spent[len(spent)/2].Nanoseconds()), "median-ns")
				})
			})
		}
	}
}

// BenchmarkWide measures an assembly of 2,000 groups and 150,000 tokens after one more turn. The
// append is not measured, and the record is kept in memory.
func BenchmarkWide(b *testing.B) {
	store, grow, req := wideSession(b)
	defer store.Close()
	engine := newEngine(b, store)
	b.ReportAllocs()
	var spent time.Duration
	for b.Loop() {
		grow()
		start := time.Now()
		mustAssemble(b, engine, req)
		spent += time.Since(start)
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "assemble-ns/op")
}
