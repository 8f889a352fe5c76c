package reduce

import (
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
)

// TestTheTextOfARefusalIsShort: it names the largest of the parts, however many there are.
func TestTheTextOfARefusalIsShort(t *testing.T) {
	e := &OverBudgetError{Target: 1_000, Needed: 100_000}
	for i := range 10_000 {
		e.Parts = append(e.Parts, IrreduciblePart{"pinned message", eventlog.Seq(i + 1), 10})
	}
	if text := e.Error(); len(text) > 2_000 {
		t.Errorf("the text has %d bytes", len(text))
	}
	e.Parts = e.Parts[:2]
	if got, want := e.Error(), "the context needs 100000 tokens and the target is 1000; irreducible: pinned message (event 1, 10 tokens), pinned message (event 2, 10 tokens)"; got != want {
		t.Errorf("%s instead of %s", got, want)
	}
}
