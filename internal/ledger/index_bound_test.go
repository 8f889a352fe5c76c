package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
)

// TestIndexIsBounded: however many names there are, the index holds mostNames, and those that were used.
func TestIndexIsBounded(t *testing.T) {
	x := NewIndex(budget.NewGauge(budget.Heuristic{}))
	x.AddArguments("open internal/used/often.go")
	for n := range 8 {
		var text strings.Builder
		for i := range mostNames / 3 {
			fmt.Fprintf(&text, "name_%d_%d ", n, i)
		}
		x.AddOwn(text.String())
		x.AddArguments("open internal/used/often.go")
		if len(x.entries) > mostNames {
			t.Fatalf("%d names after %d texts", len(x.entries), n+1)
		}
	}
	if len(x.entries) < mostNames/2 {
		t.Errorf("%d names are left", len(x.entries))
	}
	if first := x.ranking()[0]; first.name != "internal/used/often.go" {
		t.Errorf("the first name is %q", first.name)
	}
}
