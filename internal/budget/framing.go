package budget

import eventlog "github.com/contextd/contextd/internal/log"

// Framing has the numbers of tokens that a provider adds around the content of a format. A message costs
// MessageOverhead in all formats. Costs that no provider documents, such as those of a call or a result, are the most
// that recorded sessions were billed beyond the text.
type Framing struct {
	// Call is for the name and delimiters of a tool call, and Result for the delimiters of a result, if the
	// model's tokenizer is known.
	Call, Result int
	// EstimatedCall and EstimatedResult are the same for an unknown tokenizer: models of other makers that use the
	// format have longer templates.
	EstimatedCall, EstimatedResult int
	// Tools is for the text before the schemas of the tools, once for each request with tools.
	Tools int
	// Functions says that OpenAI's formula counts the schemas of functions.
	Functions bool
}

// NoFraming is the framing of contextd's own format, whose messages go to an unknown model.
var NoFraming = Framing{Call: CallOverhead, Result: ResultOverhead, EstimatedCall: EstimatedCallOverhead, EstimatedResult: ResultOverhead}

// Framed returns a gauge that also counts what a provider adds around messages in a format; the empty name
// is contextd's own format.
func (g Gauge) Framed(format string, f Framing) Gauge {
	g.format, g.framing = format, f
	return g
}

// CountedReasoning is what of reasoning is counted.
type CountedReasoning uint8

// All reasoning, as in records of builds that counted all; what the format sends; and what it sends to an API that wants
// reasoning back as text.
const (
	AllReasoning CountedReasoning = iota
	SentReasoning
	ReturnedReasoning
)

// sending says what of reasoning is sent.
type sending struct {
	counted CountedReasoning
	of      func(t eventlog.Thinking, model string) (text, seal bool)
}

// Sending returns a gauge that counts of reasoning only what is sent. sent says for a block, in a message of a model, whether
// its text and its seal may be: it must not miss what is sent. Gauges of one format with the same counted must have the same
// sent.
func (g Gauge) Sending(counted CountedReasoning, sent func(t eventlog.Thinking, model string) (text, seal bool)) Gauge {
	g.sending = &sending{counted, sent}
	return g
}

// Sent returns how many of the tokens of a block are sent, if it is in a message that a model wrote; model is empty if
// it is not known.
func (g Gauge) Sent(b eventlog.Block, model string, tokens uint64) uint64 {
	t, ok := b.(eventlog.Thinking)
	if !ok || g.sending == nil {
		return tokens
	}
	switch text, seal := g.sending.of(t, model); {
	case seal:
		return tokens
	case !text:
		return 0
	case t.Sealed():
		return min(tokens, g.Text(t.Text))
	default:
		return tokens
	}
}

// Format names the format that the gauge is framed for; empty if it is not.
func (g Gauge) Format() string { return g.format }

// Tokenizer returns the tokenizer's name, whatever the framing.
func (g Gauge) Tokenizer() string { return g.counter.Name() }

// Reframed converts the count of a block by an unframed gauge of the same tokenizer to the count by this
// one.
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

// exchange replaces one overhead in a count by a different one.
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
