package budget

import (
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// What a message costs beside its text, in tokens. Providers frame every message
// with its role and separators; OpenAI's cookbook "How to count tokens with
// tiktoken" gives 3 per message and 1 for the role.
const (
	MessageOverhead = 4
	// CallOverhead is what names and delimits a tool call or a tool result.
	CallOverhead = 6
	// ImageTokens is charged for an image whose real price the runtime did not
	// say: the largest that Anthropic bills for one, (1568 px)² / 750 capped.
	ImageTokens = 1600
	// sealedBytesPerToken sizes signatures and encrypted reasoning: base64, of
	// which tokenizers make about one token in two to three bytes.
	sealedBytesPerToken = 3
	// documentBytesPerToken sizes other media, such as PDF files.
	documentBytesPerToken = 16
)

// Accountant is the one gauge: what triggers a reducer and what measures its
// effect count by the same Accountant. It is safe for concurrent use.
type Accountant struct{ counter Counter }

// NewAccountant returns an Accountant that counts text by counter.
func NewAccountant(counter Counter) Accountant { return Accountant{counter} }

// Name is the tokenizer's.
func (a Accountant) Name() string { return a.counter.Name() }

// Text counts the tokens of text.
func (a Accountant) Text(text string) uint64 { return uint64(a.counter.Count(text).Tokens) }

// Block counts the tokens of one block.
func (a Accountant) Block(b eventlog.Block) uint64 {
	c := a.CountBlock(b)
	return uint64(c.Tokens)
}

// CountBlock counts one block and says whether the count is an estimate.
func (a Accountant) CountBlock(b eventlog.Block) Count {
	switch b := b.(type) {
	case eventlog.Text:
		return a.counter.Count(b.Text)
	case eventlog.Thinking:
		c := a.counter.Count(b.Text)
		if sealed := len(b.Signature) + len(b.RedactedData) + len(b.EncryptedContent); sealed > 0 {
			c = c.plus(Count{Tokens: (sealed + sealedBytesPerToken - 1) / sealedBytesPerToken, Estimated: true})
		}
		return c
	case eventlog.ToolCall:
		c := a.counter.Count(b.Name).plus(a.counter.Count(b.Arguments))
		return c.plus(Count{Tokens: CallOverhead})
	case eventlog.ToolResult:
		c := Count{Tokens: CallOverhead}
		for _, part := range b.Content {
			c = c.plus(a.CountBlock(part))
		}
		return c
	case eventlog.Media:
		return mediaCount(b)
	case eventlog.ProviderBlock:
		return a.counter.Count(b.JSON)
	default:
		return Count{}
	}
}

// CountEvent counts every block of a message; other events are counted as a
// whole, and those that are never rendered not at all.
func (a Accountant) CountEvent(e eventlog.Event) eventlog.TokenCounts {
	out := eventlog.TokenCounts{Tokenizer: a.counter.Name()}
	add := func(c Count) {
		out.Blocks = append(out.Blocks, uint32(c.Tokens))
		out.Estimated = out.Estimated || c.Estimated
	}
	switch b := e.Body.(type) {
	case *eventlog.Message:
		out.Blocks = make([]uint32, 0, len(b.Blocks))
		for _, block := range b.Blocks {
			add(a.CountBlock(block))
		}
	case *eventlog.Reminder:
		add(a.counter.Count(b.Body))
	}
	return out
}

func mediaCount(m eventlog.Media) Count {
	switch {
	case m.Tokens > 0:
		return Count{Tokens: int(m.Tokens)}
	case strings.HasPrefix(m.MIMEType, "image/"):
		return Count{Tokens: ImageTokens, Estimated: true}
	default:
		return Count{Tokens: max(ImageTokens, len(m.Data)/documentBytesPerToken), Estimated: true}
	}
}

func (c Count) plus(d Count) Count {
	return Count{Tokens: c.Tokens + d.Tokens, Estimated: c.Estimated || d.Estimated}
}
