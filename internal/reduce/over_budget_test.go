package reduce

import (
	"slices"
	"testing"

	"github.com/contextd/contextd/internal/budget"
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

// TestPartsOfARefusal: each part is called what the runtime knows it as, the largest first.
func TestPartsOfARefusal(t *testing.T) {
	v := NewView(budget.NewGauge(budget.Heuristic{}), []*Group{
		{Kind: KindSystem, Anchor: true, First: 1, Tokens: 90},
		{Kind: KindUser, Anchor: true, Human: 2, First: 2, Tokens: 80},
		{Kind: KindTurn, Pinned: true, First: 3, Tokens: 70},
		{Kind: KindUser, Human: 4, First: 4, Tokens: 60},
		{Kind: KindUser, Standing: "plan", First: 5, Tokens: 50},
		{Kind: KindUser, First: 6, Tokens: 40},
		{Kind: KindUser, Human: 7, First: 7, Tokens: 35},
		{Kind: KindTurn, First: 8, Tokens: 30},
	})
	v.digest = Digest{Tokens: 35, SummaryTokens: 25}
	if got, want := irreducible(v, 5), []IrreduciblePart{
		{"system prompt", 1, 90}, {"first user message", 2, 80}, {"pinned message", 3, 70}, {"user message", 4, 60},
		{"standing message of the runtime", 5, 50}, {"message of the runtime", 6, 40}, {"newest user message", 7, 35},
		{newestTurn, 8, 30}, {"summary", 0, 25}, {"record of earlier calls", 0, 10}, {"reminders", 0, 5},
	}; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}
