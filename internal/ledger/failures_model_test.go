package ledger

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
)

// TestFailuresAreRepaired: whatever calls fail and succeed, the open failures are those that no later call
// repairs.
func TestFailuresAreRepaired(t *testing.T) {
	gauge := budget.NewGauge(budget.Heuristic{})
	word := rapid.SampledFrom([]string{"make", "go", "test", "./...", "./a", "./b", "a.py", "x=1", "-v", "cd", "&&", "\"\"", "\"\x00\""})
	rapid.Check(t, func(t *rapid.T) {
		failures := NewFailures(gauge)
		var open []failure
		for i := range rapid.IntRange(1, 40).Draw(t, "calls") {
			tool := rapid.SampledFrom([]string{"bash", "edit"}).Draw(t, "tool")
			var arguments string
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				arguments = fmt.Sprintf(`{"path":"%d.go"}`, rapid.IntRange(0, 2).Draw(t, "file"))
			case 1:
				arguments = rapid.SampledFrom([]string{"", "no JSON", "{}", `{"path":""}`}).Draw(t, "odd")
			default:
				arguments = fmt.Sprintf(`{"command":%q}`, strings.Join(rapid.SliceOfN(word, 1, 4).Draw(t, "words"), " "))
			}
			failed := rapid.Bool().Draw(t, "failed")
			failures.Add(tool, arguments, failed, "no", fmt.Sprint("ctx:", i))
			if now, ok := newFailure(tool, arguments); ok {
				open = slices.DeleteFunc(open, now.repairs)
				if failed {
					now.pointer, now.reason = fmt.Sprint("ctx:", i), "no"
					open = append(open, now)
				}
			}
			var want strings.Builder
			for _, f := range open[max(0, len(open)-8):] {
				want.WriteString(f.String())
			}
			if got := budget.Join(failures.Write(math.MaxUint64)); got != want.String() || failures.count != len(open) {
				t.Fatalf("%d are open:\n%s\ninstead of %d:\n%s", failures.count, got, len(open), want.String())
			}
		}
	})
}
