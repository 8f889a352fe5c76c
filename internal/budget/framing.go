package budget

import eventlog "github.com/contextd/contextd/internal/log"

// Framing is what a provider puts around what a format carries, in tokens.
type Framing struct {
	// Call is what names and delimits a tool call, and Result what delimits a result,
	// where the model's tokenizer is known.
	Call, Result int
	// EstimatedCall and EstimatedResult are the same where it is not: models of others
	// behind the same format, whose templates are wordier.
	EstimatedCall, EstimatedResult int
	// Priming is what begins the answer, once in a request.
	Priming int
	// Tools is what a request with tools has before their schemas.
	Tools int
}

// framings are the formats' by name. A message costs MessageOverhead in each: OpenAI's
// cookbook documents that and the priming in "How to count tokens with tiktoken", and
// Anthropic's page on tool use the tokens of its prompt for tools, the most of which go to
// a request that lets Claude 4 choose. Nobody documents what a call or a result costs:
// those figures are the most that recorded sessions were billed for one beyond its text;
// see MessageOverhead.
var framings = map[string]Framing{
	"":                 {Call: CallOverhead, Result: ResultOverhead, EstimatedCall: EstimatedCallOverhead, EstimatedResult: ResultOverhead},
	"anthropic":        {Call: 60, Result: 18, EstimatedCall: 60, EstimatedResult: 18, Tools: 346},
	"openai_chat":      {Call: 13, Result: 13, EstimatedCall: EstimatedCallOverhead, EstimatedResult: 15, Priming: 3},
	"openai_responses": {Call: 13, Result: 13, EstimatedCall: EstimatedCallOverhead, EstimatedResult: 15, Priming: 3},
	"gemini":           {Call: 34, Result: 14, EstimatedCall: 34, EstimatedResult: 14},
}

// FramingOf returns the framing of a format; that of contextd's own, whose name is empty,
// for one that is not known.
func FramingOf(format string) (Framing, bool) {
	f, ok := framings[format]
	if !ok {
		return framings[""], false
	}
	return f, true
}

// Framed returns the accountant that counts what a provider puts around the messages of a
// format. A format that is not known, and the empty name, give the accountant without
// framing.
func (a Accountant) Framed(format string) Accountant {
	f, known := FramingOf(format)
	a.format, a.framing = "", f
	if known {
		a.format = format
	}
	return a
}

// Framing is what the accountant counts around messages.
func (a Accountant) Framing() Framing { return a.framing }

// Format names the format that the accountant is framed for; empty if it is not.
func (a Accountant) Format() string { return a.format }

// Tokenizer is the tokenizer's name, whatever the framing.
func (a Accountant) Tokenizer() string { return a.counter.Name() }

// Reframed is the count of a block that was counted without framing by the same
// tokenizer.
func (a Accountant) Reframed(b eventlog.Block, plain uint64) uint64 {
	unframed := a.Framed("")
	switch b.(type) {
	case eventlog.ToolCall:
		return exchange(plain, unframed.callOverhead(), a.callOverhead())
	case eventlog.ToolResult:
		return exchange(plain, unframed.resultOverhead(), a.resultOverhead())
	default:
		return plain
	}
}

// exchange puts one overhead in the place of another.
func exchange(n uint64, old, other Count) uint64 {
	return n - min(n, uint64(old.Tokens)) + uint64(other.Tokens)
}

func (a Accountant) callOverhead() Count {
	if a.counter.Name() == TokenizerHeuristic {
		return Count{Tokens: a.framing.EstimatedCall, Estimated: true}
	}
	return Count{Tokens: a.framing.Call}
}

func (a Accountant) resultOverhead() Count {
	if a.counter.Name() == TokenizerHeuristic {
		return Count{Tokens: a.framing.EstimatedResult}
	}
	return Count{Tokens: a.framing.Result}
}
