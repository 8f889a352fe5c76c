package budget

import eventlog "github.com/contextd/contextd/internal/log"

// Framing is what a provider puts around what a format carries, in tokens. A message costs
// MessageOverhead in each. What no provider documents, such as the cost of a call or a
// result, is the most that recorded sessions were billed for one beyond its text.
type Framing struct {
	// Call is what names and delimits a tool call, and Result what delimits a result,
	// where the model's tokenizer is known.
	Call, Result int
	// EstimatedCall and EstimatedResult are the same where it is not: models of others
	// of the same format, whose templates are wordier.
	EstimatedCall, EstimatedResult int
	// Priming is what begins the answer, once in a request.
	Priming int
	// Tools is what a request with tools has before their schemas.
	Tools int
	// Functions is set where the schemas of functions are counted by OpenAI's formula.
	Functions bool
}

// NoFraming is the framing of contextd's own format, whose messages go to a model that
// nothing is known of.
var NoFraming = Framing{Call: CallOverhead, Result: ResultOverhead, EstimatedCall: EstimatedCallOverhead, EstimatedResult: ResultOverhead}

// Framed returns the gauge that counts what a provider puts around the messages of
// the format of that name; the empty name is contextd's own.
func (g Gauge) Framed(format string, f Framing) Gauge {
	g.format, g.framing = format, f
	return g
}

// Format names the format that the gauge is framed for; empty if it is not.
func (g Gauge) Format() string { return g.format }

// Tokenizer is the tokenizer's name, whatever the framing.
func (g Gauge) Tokenizer() string { return g.counter.Name() }

// Reframed is the count of a block that was counted without framing by the same
// tokenizer.
func (g Gauge) Reframed(b eventlog.Block, plain uint64) uint64 {
	unframed := g.Framed("", NoFraming)
	switch b.(type) {
	case eventlog.ToolCall:
		return exchange(plain, unframed.callOverhead(), g.callOverhead())
	case eventlog.ToolResult:
		return exchange(plain, unframed.resultOverhead(), g.resultOverhead())
	default:
		return plain
	}
}

// exchange puts one overhead in the place of another.
func exchange(n uint64, old, other Count) uint64 {
	return n - min(n, uint64(old.Tokens)) + uint64(other.Tokens)
}

func (g Gauge) callOverhead() Count {
	if g.counter.Name() == TokenizerHeuristic {
		return Count{Tokens: g.framing.EstimatedCall, Estimated: true}
	}
	return Count{Tokens: g.framing.Call}
}

func (g Gauge) resultOverhead() Count {
	if g.counter.Name() == TokenizerHeuristic {
		return Count{Tokens: g.framing.EstimatedResult}
	}
	return Count{Tokens: g.framing.Result}
}
