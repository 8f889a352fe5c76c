package assemble_test

import (
	"testing"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
)

// BenchmarkPolicies measures what a projection policy adds to an assembly after one
// more turn, in a session of 2,000 groups of which none has left: a policy's worst
// case.
func BenchmarkPolicies(b *testing.B) {
	for name, options := range map[string]projection.Options{
		"raw": {}, "clean_tool_repair": {Name: projection.CleanToolRepair}, "squash_failed_calls": {Name: projection.SquashFailed},
		"summary_prefix":  {Name: projection.SummaryPrefix, Summary: "what happened"},
		"reachability_gc": {Name: projection.ReachabilityGC},
		"custom":          {Name: projection.CustomExpression, Expression: "errors == 0 || age < 50"},
	} {
		b.Run(name, func(b *testing.B) {
			store := memlog.New()
			defer store.Close()
			next := fill(b, store, 4_000)
			engine := newEngine(b, store)
			req := assemble.Request{
				SessionID: "s",
				Budget:    budget.Spec{MaxTokens: 100_000_000, Tokenizer: budget.TokenizerO200K},
				Policy:    assemble.Policy{Reduction: reduce.DefaultPolicy(), Projection: options},
			}
			if _, err := engine.Assemble(b.Context(), req); err != nil {
				b.Fatal(err)
			}
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
	}
}
