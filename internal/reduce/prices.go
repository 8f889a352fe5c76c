package reduce

import "github.com/contextd/contextd/internal/budget"

// Prices are what tokens of the prompt cost, in thousandths of a new one that no cache
// takes. The zero value is those of budget.DefaultPrices.
type Prices struct {
	// CacheRead is for a token that the provider reads from its cache, CacheWrite for one
	// that is written to it.
	CacheRead, CacheWrite uint64
	// MinCachedTokens is the least length of a prefix that is cached.
	MinCachedTokens uint64
}

const newPrice = 1000

// PricesOf are a model's.
func PricesOf(p budget.Prices) Prices {
	thousandths := func(ratio float64) uint64 { return budget.PartsPerMillion(ratio) / 1000 }
	return Prices{thousandths(p.CacheRead), thousandths(p.CacheWrite), p.MinCachedTokens}
}

// DefaultPrices are those of a model whose own are not known.
func DefaultPrices() Prices { return PricesOf(budget.DefaultPrices()) }

func (p Prices) orDefault() Prices {
	if p == (Prices{}) {
		return DefaultPrices()
	}
	return p
}

// rewrite is a change of the prefix, in tokens.
type rewrite struct {
	// sent is the size of the prompt before it, freed what leaves it, and again what follows
	// the first change: the provider reads that as new.
	sent, freed, again uint64
}

// rewrite is a change of a view. The prompt holds what the caller sends beside it.
func (r *reduction) rewrite(tokens, freed, again uint64) rewrite {
	return rewrite{tokens + r.budget.OverheadTokens, min(freed, tokens), again}
}

// read is what the provider must read again of the new prompt.
func (w rewrite) read(p Prices) uint64 {
	left := w.sent - w.freed
	switch {
	case w.sent < p.MinCachedTokens:
		return 0 // all of it is read at every turn
	case left-min(w.again, left) < p.MinCachedTokens:
		return left
	default:
		return w.again
	}
}

// pays reports whether what is freed pays within so many turns for what the provider must
// read again.
func (w rewrite) pays(p Prices, turns uint32) bool {
	p = p.orDefault()
	if left := w.sent - w.freed; w.sent >= p.MinCachedTokens && left < p.MinCachedTokens {
		return w.sent*p.CacheRead >= left*newPrice // what is left is not cached any more
	}
	return w.freed*p.CacheRead*uint64(turns) >= w.read(p)*(p.CacheWrite-p.CacheRead)
}

// coldPays reports whether a rewrite is worth it although that the provider's cache has
// expired is only a guess: where it is right, what is freed is not written to it again with
// the rest; where it is wrong, once in wrongGuess times, the rest is read again.
func (w rewrite) coldPays(p Prices) bool {
	const wrongGuess = 10
	p = p.orDefault()
	return w.freed*p.CacheWrite*(wrongGuess-1) >= w.read(p)*(p.CacheWrite-p.CacheRead)
}
