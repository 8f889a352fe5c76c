package budget

import "testing"

func TestPricesOfModels(t *testing.T) {
	models := newModels(t)
	for name, want := range map[string]Prices{
		"claude-sonnet-4-5-20250929":   {Input: 3, CacheRead: 0.1, CacheWrite: 1.25, Output: 5, MinCachedTokens: 1024},
		"anthropic/claude-opus-4.5":    {Input: 5, CacheRead: 0.1, CacheWrite: 1.25, Output: 5, MinCachedTokens: 4096},
		"claude-opus-5-5":              {Input: 4, CacheRead: 0.05, CacheWrite: 1.25, Output: 5, MinCachedTokens: 512},
		"claude-fable-5-2":             {Input: 8, CacheRead: 0.025, CacheWrite: 1.25, Output: 5, MinCachedTokens: 512},
		"claude-haiku-5-5":             {Input: 0.1, CacheRead: 0.1, CacheWrite: 1.25, Output: 5, MinCachedTokens: 512},
		"gpt-6-luna":                   {Input: 0.1, CacheRead: 0.1, CacheWrite: 1.25, Output: 5, MinCachedTokens: 1024},
		"gpt-6.2-sol":                  {Input: 2, CacheRead: 0.05, CacheWrite: 1.25, Output: 5, MinCachedTokens: 1024},
		"gemini-4-neon":                {Input: 3, CacheRead: 0.05, CacheWrite: 1, Output: 5, MinCachedTokens: 4096},
		"claude-of-next-year":          {CacheRead: 0.1, CacheWrite: 1.25, MinCachedTokens: 1024},
		"gpt-5.1-codex":                {Input: 1.25, CacheRead: 0.1, CacheWrite: 1, Output: 8, MinCachedTokens: 1024},
		"gpt-5.6-luna":                 {CacheRead: 0.1, CacheWrite: 1.25, MinCachedTokens: 1024},
		"gpt-4o":                       {Input: 2.5, CacheRead: 0.5, CacheWrite: 1, Output: 4, MinCachedTokens: 1024},
		"gpt-4-turbo":                  {Input: 10, CacheRead: 1, CacheWrite: 1, Output: 3},
		"gemini-2.5-flash-lite-latest": {Input: 0.1, CacheRead: 0.1, CacheWrite: 1, Output: 4, MinCachedTokens: 2048},
		"deepseek-flash":               {CacheRead: 0.02, CacheWrite: 1},
		"deepseek/deepseek-v4-pro":     {CacheRead: 0.033, CacheWrite: 1},
		"glm-4.6":                      DefaultPrices(),
		"unheard-of":                   {CacheRead: 0.1, CacheWrite: 1.25},
	} {
		if got, _ := models.Lookup(name); got.Prices != want {
			t.Errorf("%s: %+v, want %+v", name, got.Prices, want)
		}
	}
}

// An entry that exists only for its prices takes all other fields from the entry that its name matched
// before.
func TestPricesLeaveTheRestOfModelsAlone(t *testing.T) {
	models := newModels(t)
	for _, family := range priceTable {
		for name := range family.prices {
			if got, ok := models.Lookup(name); !ok || got.Provider == "" || got.Window == 0 {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
	for name, window := range map[string]uint64{"gpt-5.2-chat-latest": 128_000, "gpt-5.4-mini": 400_000, "gemini-1.5-pro-002": 2_097_152, "o1-mini": 128_000} {
		if got, _ := models.Lookup(name); got.Window != window {
			t.Errorf("%s has a window of %d, want %d", name, got.Window, window)
		}
	}
}
