package assemble_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// TestContextsKeepTheProvidersRules assembles logs of every kind, whole and under pressure:
// what comes is what the provider of the format takes.
func TestContextsKeepTheProvidersRules(t *testing.T) {
	for _, f := range render.Formats() {
		if rules.Of(f.Name) == nil {
			continue // contextd's own
		}
		for _, policy := range []string{"", projection.Full} {
			t.Run(f.Name+" "+policy, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					store := memlog.New()
					defer store.Close()
					push(t, store, "s", genUndecidedLog(t)...)
					req := request()
					req.Policy.Projection.Name, req.Budget.Format = policy, f.Name
					req.Budget.MaxTokens = rapid.SampledFrom([]uint64{400, 2_000, 10_000_000}).Draw(t, "max_tokens")
					out, err := newEngine(t, store).Assemble(t.Context(), req)
					var over *assemble.BudgetError
					if errors.As(err, &over) {
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					lines := make([][]byte, len(out.Messages))
					for i, m := range out.Messages {
						lines[i] = m.JSON
					}
					for _, v := range rules.Of(f.Name)(lines) {
						t.Fatalf("%+v in\n%s", v, lines)
					}
				})
			})
		}
	}
}
