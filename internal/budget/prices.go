package budget

import "cmp"

// Prices say what the tokens of a model cost.
type Prices struct {
	// Input is the price of a million new tokens of the prompt, in US dollars; 0 is unknown.
	Input float64
	// CacheRead is the price of a token that the provider reads from its cache, CacheWrite of a token that it reads
	// for the first time and writes to the cache, and Output of a token that the model writes; an Output of 0 is
	// unknown. All three are relative to the price of an uncached prompt token.
	CacheRead, CacheWrite, Output float64
	// MinCachedTokens is the length of the shortest prefix that the provider caches.
	MinCachedTokens uint64
}

// DefaultPrices returns the prices of a model whose prices are unknown.
func DefaultPrices() Prices { return Prices{CacheRead: 0.1, CacheWrite: 1.25} }

// PriceOverride changes some prices; nil does not change one.
type PriceOverride struct {
	Input           *float64 `yaml:"input" json:"input,omitempty"`
	CacheRead       *float64 `yaml:"cache_read" json:"cache_read,omitempty"`
	CacheWrite      *float64 `yaml:"cache_write" json:"cache_write,omitempty"`
	Output          *float64 `yaml:"output" json:"output,omitempty"`
	MinCachedTokens *uint64  `yaml:"min_cached_tokens" json:"min_cached_tokens,omitempty"`
}

func (o PriceOverride) over(p Prices) Prices {
	p.Input, p.Output = *cmp.Or(o.Input, &p.Input), *cmp.Or(o.Output, &p.Output)
	p.CacheRead, p.CacheWrite = *cmp.Or(o.CacheRead, &p.CacheRead), *cmp.Or(o.CacheWrite, &p.CacheWrite)
	p.MinCachedTokens = *cmp.Or(o.MinCachedTokens, &p.MinCachedTokens)
	return p
}

// Bounds of prices. A cache read never costs more than an uncached token, and a cache write never less.
const (
	mostInput      = 1e6
	mostCacheWrite = 10
	mostOutput     = 1e3
	mostMinCached  = 1_000_000_000
)

func (p Prices) validate() *ModelError {
	switch {
	case !(p.Input >= 0 && p.Input <= mostInput):
		return &ModelError{"prices.input", "must be at least 0 and at most 1000000"}
	case !(p.CacheRead >= 0 && p.CacheRead <= 1):
		return &ModelError{"prices.cache_read", "must be at least 0 and at most 1, relative to a new token"}
	case !(p.CacheWrite >= 1 && p.CacheWrite <= mostCacheWrite):
		return &ModelError{"prices.cache_write", "must be at least 1 and at most 10, relative to a new token"}
	case !(p.Output >= 0 && p.Output <= mostOutput):
		return &ModelError{"prices.output", "must be at least 0 and at most 1000, relative to a new token"}
	case p.MinCachedTokens > mostMinCached:
		return &ModelError{"prices.min_cached_tokens", "must be at most 1000000000"}
	}
	return nil
}
