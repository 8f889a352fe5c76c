package evaluate

import (
	"bytes"
	"time"
)

// Bill is the cost of prompts. The provider's cache is assumed to have whole messages: the first messages that a
// prompt shares with the one before it.
type Bill struct {
	// Tokens is the size of all prompts together, and Read how much of it came from the provider's cache.
	Tokens, Read uint64
	// Spent is their cost, in units of the price of one new, uncached prompt token.
	Spent float64
	// OverWindow counts the prompts that are larger than the window.
	OverWindow int
	// Largest is the largest prompt.
	Largest uint64
	// Expired is how often the cache had expired.
	Expired int
}

// add adds the bill of other sessions.
func (b *Bill) add(o Bill) {
	b.Tokens += o.Tokens
	b.Read += o.Read
	b.Spent += o.Spent
	b.OverWindow += o.OverWindow
	b.Largest = max(b.Largest, o.Largest)
	b.Expired += o.Expired
}

// biller models the provider's cache, which holds the last prompt.
type biller struct {
	last Prompt
	at   time.Time
	any  bool
}

// compare counts the leading messages that are the same as in the previous prompt. changed says that the
// previous prompt is no prefix of this one.
func (p Prompt) compare(last Prompt) (stable int, changed bool) {
	from := 0
	for stable < min(len(p.Messages), len(last.Messages)) {
		end := p.Messages[stable].End
		if last.Messages[stable].End != end || !bytes.Equal(last.JSON[from:end], p.JSON[from:end]) {
			break
		}
		from = end
		stable++
	}
	return stable, stable < len(last.Messages)
}

// pay adds a prompt to the bill. It returns the prompt's tokens, and how many of them came from the cache.
func (b *biller) pay(bill *Bill, p Prompt, stable int, at time.Time, terms Terms) (tokens, read uint64) {
	tokens = terms.Overhead + p.Tokens
	switch {
	case !b.any:
	case terms.CacheTTL > 0 && !at.IsZero() && !b.at.IsZero() && at.Sub(b.at) > terms.CacheTTL:
		bill.Expired++
	default:
		read = terms.Overhead
		for _, m := range p.Messages[:stable] {
			read += m.Tokens
		}
		read = min(read, tokens)
	}
	prices := terms.Prices
	if read < prices.MinCachedTokens {
		read = 0
	}
	fresh := prices.CacheWrite
	if tokens < prices.MinCachedTokens {
		fresh = 1
	}
	bill.Tokens += tokens
	bill.Read += read
	bill.Spent += float64(read)*prices.CacheRead + float64(tokens-read)*fresh
	if tokens > terms.Window {
		bill.OverWindow++
	}
	bill.Largest = max(bill.Largest, tokens)
	b.last, b.at, b.any = p, at, true
	return tokens, read
}
