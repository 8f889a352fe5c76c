package budget

import (
	"math"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Counter counts the tokens of texts under one tokenizer.
//
// A Counter is a pure function of the text: the same text has the same count in every process and on every machine,
// whatever was counted before. It is safe for concurrent use and takes time about linear in the text. It accepts
// every string: each byte that is not UTF-8 counts as U+FFFD.
type Counter interface {
	// Name returns the tokenizer's name in configuration and reports.
	Name() string
	Count(text string) Count
	// Cost returns the size of a text in fractions of a token. Count is Cost rounded up to tokens. If a text is split
	// between lines or words (see Adds), the costs of its parts add up to the cost of the text.
	Cost(text string) uint64
	// PerToken returns how many units of Cost make a token.
	PerToken() uint64
}

// Count is a number of tokens.
type Count struct {
	Tokens int
	// Estimated is set if the number may differ from the tokenizer's, because the tokenizer is not public, or because
	// the text was cut so that it could be counted in bounded time.
	Estimated bool
}

// plus returns the sum of two counts. It is an estimate if one of them is.
func (c Count) plus(d Count) Count {
	return Count{Tokens: c.Tokens + d.Tokens, Estimated: c.Estimated || d.Estimated}
}

// The tokens that providers add around messages, calls and results. The overhead of a message is the one in OpenAI's
// cookbook, "How to count tokens with tiktoken": three per message and one for the role. The others come from
// recorded sessions: what was billed beyond the text, minus the overhead of the message. That was 11 to 13 (GPT-5),
// 15 (DeepSeek), 14 (Gemini 3) and 12 to 18 (Claude 4) per tool result, and 13 (GPT-5), 34 (Gemini 3), 36 (DeepSeek)
// and 60 (Claude 4) per tool call.
const (
	MessageOverhead = 4
	// ResultOverhead is for the delimiters of a tool result.
	ResultOverhead = 10
	// CallOverhead is for the names and delimiters of a tool call of models whose tokenizer is known, and
	// EstimatedCallOverhead of all others, whose templates are longer.
	CallOverhead          = 10
	EstimatedCallOverhead = 40
)

// Content that is not text is estimated by its size.
const (
	// ImageTokens is the size of an image for which the runtime gave none: about the most that OpenAI and Anthropic
	// charge for an image, unless a request asks for a higher resolution.
	ImageTokens = 1600
	// sealedBytesPerToken estimates signatures and encrypted reasoning in base64. In recorded sessions of Claude 4
	// and GPT-5 they have 6 to 8 bytes per token of the reasoning in them, and a few hundred bytes more.
	sealedBytesPerToken = 5
	// documentBytesPerToken estimates other media, such as PDF files.
	documentBytesPerToken = 16
)

// Gauge counts tokens. The same Gauge must decide whether a reducer runs and measure what it frees. It is safe for
// concurrent use.
type Gauge struct {
	counter Counter
	// format is the name of framing's format; empty is contextd's own.
	format  string
	framing Framing
	// sending says what of reasoning is sent; nil if all is.
	sending *sending
}

// NewGauge returns a Gauge that counts text with a counter.
func NewGauge(counter Counter) Gauge {
	return Gauge{counter: counter, framing: NoFraming}
}

// Name returns the tokenizer's name, followed by "+" and the format's name if the gauge is framed, and by "+sent" or
// "+returned" if it does not count all reasoning. Gauges with the same name give the same counts.
func (g Gauge) Name() string {
	name := g.counter.Name()
	if g.format != "" {
		name += "+" + g.format
	}
	switch {
	case g.sending == nil:
		return name
	case g.sending.counted == ReturnedReasoning:
		return name + "+returned"
	default:
		return name + "+sent"
	}
}

// Text counts the tokens of text.
func (g Gauge) Text(text string) uint64 { return uint64(g.counter.Count(text).Tokens) }

// Block counts the tokens of one block.
func (g Gauge) Block(b eventlog.Block) uint64 { return uint64(g.CountBlock(b).Tokens) }

// CountBlock counts one block, including the provider's framing, and says whether the count is an estimate.
func (g Gauge) CountBlock(b eventlog.Block) Count {
	switch b := b.(type) {
	case eventlog.Text:
		return g.counter.Count(b.Text)
	case eventlog.Thinking:
		return g.countThinking(b)
	case eventlog.ToolCall:
		return g.callOverhead().plus(g.counter.Count(b.Name)).plus(g.counter.Count(b.Arguments))
	case eventlog.ToolResult:
		c := g.resultOverhead()
		for _, part := range b.Content {
			c = c.plus(g.CountBlock(part))
		}
		return c
	case eventlog.Media:
		return g.countMedia(b)
	case eventlog.ProviderBlock:
		if file, ok := fileOf(b); ok {
			return g.countMedia(file)
		}
		return g.counter.Count(b.JSON)
	default:
		return Count{}
	}
}

// CountEvent counts each block of a message. A reminder gets one count, and events that are never rendered
// get none.
func (g Gauge) CountEvent(e eventlog.Event) eventlog.TokenCounts {
	out := eventlog.TokenCounts{Tokenizer: g.Name()}
	add := func(c Count) {
		out.Blocks = append(out.Blocks, uint32(min(c.Tokens, math.MaxUint32)))
		out.Estimated = out.Estimated || c.Estimated
	}
	switch b := e.Body.(type) {
	case *eventlog.Message:
		out.Blocks = make([]uint32, 0, len(b.Blocks))
		for _, block := range b.Blocks {
			add(g.CountBlock(block))
		}
	case *eventlog.Reminder:
		add(g.counter.Count(b.Body))
	}
	return out
}

// countThinking counts the text or, if that is more, the sealed reasoning: the provider charges for the unsealed
// reasoning, of which the text may be just a summary.
func (g Gauge) countThinking(t eventlog.Thinking) Count {
	c := g.counter.Count(t.Text)
	if !t.Sealed() {
		return c
	}
	base64 := len(t.Signature) + len(t.EncryptedContent) + (len(t.RedactedData)+2)/3*4
	return Count{Tokens: max(c.Tokens, (base64+sealedBytesPerToken-1)/sealedBytesPerToken), Estimated: true}
}

func (g Gauge) countMedia(m eventlog.Media) Count {
	switch {
	case m.Tokens > 0:
		return Count{Tokens: int(m.Tokens)}
	case strings.HasPrefix(m.MIMEType, "image/"):
		return Count{Tokens: ImageTokens, Estimated: true}
	case readAsText(m.MIMEType) && m.Data != "":
		return g.counter.Count(m.Data)
	default:
		return Count{Tokens: max(ImageTokens, len(m.Data)/documentBytesPerToken), Estimated: true}
	}
}
