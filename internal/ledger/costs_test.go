package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/costtest"
)

// TestCosts holds indexes to testdata/costs.txt.
func TestCosts(t *testing.T) {
	line := func(names int) string {
		var out strings.Builder
		for i := range names {
			fmt.Fprintf(&out, "handler%d(ctx),", i)
		}
		return out.String()
	}
	index := func(text string) func(testing.TB) func() {
		return func(testing.TB) func() {
			gauge := budget.NewGauge(budget.Heuristic{})
			return func() { NewIndex(gauge).AddText(text) }
		}
	}
	var many strings.Builder
	for i := range 2_000 {
		fmt.Fprintf(&many, `,"k%d":%d`, i, i)
	}
	wide := `{"path":"a"` + many.String() + `}`
	take := func(testing.TB) func() {
		gauge := budget.NewGauge(budget.Heuristic{})
		return func() {
			Place("put", wide)
			NewFiles(gauge).Add("put", wide, nil)
			NewCalls(gauge).Add(Call{Tool: "put", Arguments: Shorten(wide), Detail: Detail(wide), Members: Members(wide)})
		}
	}
	costtest.Hold(t, "testdata/costs.txt",
		costtest.Operation{Name: "index a line of 20,000 names", Start: index(line(20_000)), Counted: 10},
		costtest.Operation{Name: "take in a call of 2,000 arguments", Start: take, Counted: 10},
	)
}
