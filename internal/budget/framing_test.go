package budget_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

var telegraph = budget.Framing{Call: 13, Result: 14, EstimatedCall: 41, EstimatedResult: 15}

func TestFramed(t *testing.T) {
	call, result := eventlog.ToolCall{Name: "read", Arguments: `{"path": "x"}`}, eventlog.ToolResult{Content: []eventlog.Block{eventlog.Text{Text: "a b"}}}
	for _, c := range []struct {
		format, tokenizer, name string
		call, result            int
	}{
		{"", budget.TokenizerO200K, "o200k_base", 10 + 3, 10 + 2},
		{"", budget.TokenizerHeuristic, "heuristic", 40 + 3, 10 + 2},
		{"telegraph", budget.TokenizerO200K, "o200k_base+telegraph", 13 + 3, 14 + 2},
		{"telegraph", budget.TokenizerHeuristic, "heuristic+telegraph", 41 + 3, 15 + 2},
	} {
		a := budget.NewGauge(words{c.tokenizer})
		if c.format != "" {
			a = a.Framed(c.format, telegraph)
		}
		if a.Name() != c.name || a.Tokenizer() != c.tokenizer || a.Format() != c.format {
			t.Errorf("%q: named %q, of %q and %q", c.format, a.Name(), a.Tokenizer(), a.Format())
		}
		if got := a.CountBlock(call).Tokens; got != c.call {
			t.Errorf("%s: a call has %d tokens, want %d", a.Name(), got, c.call)
		}
		if got := a.CountBlock(result).Tokens; got != c.result {
			t.Errorf("%s: a result has %d tokens, want %d", a.Name(), got, c.result)
		}
		if got := a.CountEvent(eventlog.Event{Body: &eventlog.Message{Blocks: []eventlog.Block{call}}}).Tokenizer; got != a.Name() {
			t.Errorf("%s: counts named %q", a.Name(), got)
		}
		if again := a.Framed("", budget.NoFraming); again.Name() != c.tokenizer || again.Format() != "" {
			t.Errorf("%s: unframed is named %q", a.Name(), again.Name())
		}
	}
}

// TestReframed: a count without framing can be converted to one with framing without counting again.
func TestReframed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain := budget.NewGauge(words{rapid.SampledFrom(budget.Tokenizers()).Draw(t, "tokenizer")})
		framed := plain.Framed("", budget.NoFraming)
		if rapid.Bool().Draw(t, "framed") {
			framed = plain.Framed("telegraph", telegraph)
		}
		text := rapid.SampledFrom([]string{"", "a", "a b c"}).Draw(t, "text")
		for _, b := range []eventlog.Block{
			eventlog.Text{Text: text}, eventlog.Thinking{Text: text, Signature: text}, eventlog.ToolCall{Name: text, Arguments: text},
			eventlog.ToolResult{Content: []eventlog.Block{eventlog.Text{Text: text}, eventlog.Media{MIMEType: "image/png"}}},
			eventlog.Media{MIMEType: "image/png"}, eventlog.ProviderBlock{JSON: text},
		} {
			if got, want := framed.Reframed(b, plain.Block(b)), framed.Block(b); got != want {
				t.Errorf("%s: %T: %d tokens, want %d", framed.Name(), b, got, want)
			}
		}
	})
	// A count that is lower than the overhead it is to hold does not wrap around.
	if got := budget.NewGauge(words{budget.TokenizerO200K}).Framed("telegraph", telegraph).Reframed(eventlog.ToolCall{}, 3); got != 13 {
		t.Errorf("%d tokens", got)
	}
}
