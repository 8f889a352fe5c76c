package reduce

import "github.com/contextd/contextd/internal/budget"

// Prices are what tokens of the prompt cost, in thousandths of the price of an uncached token. The zero
// value means budget.DefaultPrices.
type Prices struct {
	// CacheRead is the price of a token that the provider reads from its cache, CacheWrite that of one that
	// it writes to the cache.
	CacheRead, CacheWrite uint64
	// MinCachedTokens is the least length of a prefix that the provider caches.
	MinCachedTokens uint64
}

const newPrice = 1000

// PricesOf converts the prices of a model.
func PricesOf(p budget.Prices) Prices {
	thousandths := func(ratio float64) uint64 { return budget.PartsPerMillion(ratio) / 1000 }
	return Prices{thousandths(p.CacheRead), thousandths(p.CacheWrite), p.MinCachedTokens}
}

// DefaultPrices returns the prices of a model whose prices are unknown.
func DefaultPrices() Prices { return PricesOf(budget.DefaultPrices()) }

func (p Prices) orDefault() Prices {
	if p == (Prices{}) {
		return DefaultPrices()
	}
	return p
}

// rewrite has the sizes of a change of the prefix, in tokens.
type rewrite struct {
	// sent is the size of the prompt before the change, freed how much smaller it becomes, and again the size from
	// the first change on, which the provider reads as new.
	sent, freed, again uint64
}

// rewrite returns the sizes of a change of a view with this many tokens. The prompt also has what the caller sends
// with the view.
func (r *reduction) rewrite(tokens, freed, again uint64) rewrite {
	return rewrite{tokens + r.budget.OverheadTokens, min(freed, tokens), again}
}

// read returns how many tokens of the new prompt the provider must read again.
func (w rewrite) read(p Prices) uint64 {
	left := w.sent - w.freed
	switch {
	case w.sent < p.MinCachedTokens:
		return 0 // it was not cached before either: all of it is read at every turn
	case left-min(w.again, left) < p.MinCachedTokens:
		return left
	default:
		return w.again
	}
}

// pays reports whether what is freed pays within a number of turns for what the provider must read again.
func (w rewrite) pays(p Prices, turns uint32) bool {
	p = p.orDefault()
	if left := w.sent - w.freed; w.sent >= p.MinCachedTokens && left < p.MinCachedTokens {
		return w.sent*p.CacheRead >= left*newPrice // the rest becomes too short to be cached
	}
	return w.freed*p.CacheRead*uint64(turns) >= w.read(p)*(p.CacheWrite-p.CacheRead)
}

// coldPays reports whether to rewrite when the provider's cache has probably expired. If it has, what is freed need
// not be cached again with the rest. If it has not, which is so once in wrongGuess times, the rest is read again in
// vain.
func (w rewrite) coldPays(p Prices) bool {
	const wrongGuess = 10
	p = p.orDefault()
	return w.freed*p.CacheWrite*(wrongGuess-1) >= w.read(p)*(p.CacheWrite-p.CacheRead)
}
