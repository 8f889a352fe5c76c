package budget

// listPrice is the list price of a family of models. input and output are US dollars for a million tokens of the
// prompt and the answer; 0 if the models of the family differ. minCached is the shortest prefix that is cached, in
// tokens.
type listPrice struct {
	input, output float64
	minCached     uint64
}

// priceTable has the list prices of the providers' own APIs as published in November 2026. cacheRead and cacheWrite
// are relative to an uncached token. Those of Claude Fable 5.2, GPT-6 and later, and Gemini 3.6 and 4 are what resellers
// and release notes gave. If long prompts cost more, the prices of short ones are here; the relations are
// the same. Writes to Anthropic's cache are for five minutes. If no shortest prefix was published, it is the
// preceding model's.
var priceTable = []struct {
	cacheRead, cacheWrite float64
	prices                map[string]listPrice
}{
	{0.1, 1.25, map[string]listPrice{ // https://platform.claude.com/docs/en/about-claude/pricing
		"claude-*": {0, 0, 1024}, "claude-2*": {0, 0, 1024}, "claude-3*": {0, 0, 1024},
		"claude-3-5-haiku*": {0.8, 4, 2048}, "claude-3-7-sonnet*": {3, 15, 1024}, "claude-opus-4*": {15, 75, 1024},
		"claude-opus-4-5*": {5, 25, 4096}, "claude-opus-4-6*": {5, 25, 4096},
		"claude-opus-4-7*": {5, 25, 2048}, "claude-opus-4-8*": {5, 25, 1024},
		"claude-opus-5*": {5, 25, 512}, "claude-sonnet-4*": {3, 15, 1024}, "claude-sonnet-5*": {2, 10, 1024},
		"claude-haiku-4*": {1, 5, 4096}, "claude-haiku-5*": {0.1, 0.5, 4096}, "claude-haiku-5-5*": {0.1, 0.5, 512},
		"claude-fable-5*": {10, 50, 512}, "claude-mythos-5*": {10, 50, 512},
	}},
	{0.05, 1.25, map[string]listPrice{
		"claude-opus-5-5*": {4, 20, 512}, "claude-sonnet-5-5*": {2, 10, 512},
	}},
	{0.025, 1.25, map[string]listPrice{
		"claude-fable-5-1*": {10, 50, 512}, "claude-mythos-5-1*": {10, 50, 512},
		"claude-fable-5-2*": {8, 40, 512},
	}},
	{0.1, 1, map[string]listPrice{ // https://developers.openai.com/api/docs/pricing
		"gpt-5*": {0, 0, 1024}, "gpt-5": {1.25, 10, 1024}, "gpt-5-mini*": {0.25, 2, 1024}, "gpt-5-nano*": {0.05, 0.4, 1024},
		"gpt-5-codex*": {1.25, 10, 1024}, "gpt-5-chat*": {1.25, 10, 1024},
		"gpt-5.1*": {1.25, 10, 1024}, "gpt-5.1-chat*": {1.25, 10, 1024}, "gpt-5.1-codex-mini*": {0.25, 2, 1024},
		"gpt-5.2*": {1.75, 14, 1024}, "gpt-5.2-chat*": {1.75, 14, 1024}, "gpt-5.3*": {1.75, 14, 1024},
		"gpt-5.4*": {2.5, 15, 1024}, "gpt-5.4-mini*": {0.75, 4.5, 1024}, "gpt-5.4-nano*": {0.2, 1.25, 1024},
		"gpt-5.5*": {5, 30, 1024},
	}},
	{0.1, 1.25, map[string]listPrice{ // OpenAI charges for cache writes from this model on
		"gpt-5.6*": {0, 0, 1024}, "gpt-5.6-sol*": {5, 30, 1024},
		"gpt-6*": {0, 0, 1024}, "gpt-6-sol*": {2, 10, 1024}, "gpt-6-luna*": {0.1, 0.5, 1024},
	}},
	{0.05, 1.25, map[string]listPrice{
		"gpt-6.1-sol*": {2, 10, 1024}, "gpt-6.2-sol*": {2, 10, 1024}, "gpt-6.2-astra*": {8, 40, 1024},
	}},
	{0.25, 1, map[string]listPrice{
		"gpt-4.1*": {2, 8, 1024}, "gpt-4.1-mini*": {0.4, 1.6, 1024}, "gpt-4.1-nano*": {0.1, 0.4, 1024},
		"o3*": {2, 8, 1024}, "o4*": {0, 0, 1024}, "o4-mini*": {1.1, 4.4, 1024},
	}},
	{0.5, 1, map[string]listPrice{
		"gpt-4o*": {2.5, 10, 1024}, "gpt-4o-mini*": {0.15, 0.6, 1024}, "chatgpt-4o*": {2.5, 10, 1024},
		"o1*": {15, 60, 1024}, "o1-mini*": {1.1, 4.4, 1024}, "o1-preview*": {15, 60, 1024}, "o3-mini*": {1.1, 4.4, 1024},
	}},
	// Models without a price for cached tokens: each prompt token costs the full price.
	{1, 1, map[string]listPrice{
		"gpt-4": {30, 60, 0}, "gpt-4-*": {}, "gpt-4-32k*": {60, 120, 0}, "gpt-4-turbo*": {10, 30, 0},
		"gpt-4-1106*": {10, 30, 0}, "gpt-4-0125*": {10, 30, 0}, "gpt-4-vision*": {10, 30, 0},
		"gpt-3.5-turbo*": {0.5, 1.5, 0}, "gpt-3.5-turbo-instruct*": {1.5, 2, 0}, "gpt-35-turbo*": {0.5, 1.5, 0},
		"gpt-5-pro*": {15, 120, 0}, "gpt-5.2-pro*": {21, 168, 0}, "gpt-5.4-pro*": {30, 180, 0}, "gpt-5.5-pro*": {30, 180, 0},
		"o1-pro*": {150, 600, 0}, "o3-pro*": {20, 80, 0},
	}},
	{0.1, 1, map[string]listPrice{ // https://ai.google.dev/gemini-api/docs/pricing; caching is implicit
		"gemini-*": {0, 0, 4096}, "gemini-3-flash*": {0.5, 3, 4096}, "gemini-3-pro*": {2, 12, 4096}, "gemini-3.1-pro*": {2, 12, 4096},
		"gemini-3.1-flash-lite*": {0.25, 1.5, 4096}, "gemini-3.5-flash*": {1.5, 9, 4096}, "gemini-3.5-flash-lite*": {0.3, 2.5, 4096},
		"gemini-3.6-flash*": {1.5, 7.5, 4096},
		"gemini-2.5-pro*":   {1.25, 10, 2048}, "gemini-2.5-flash*": {0.3, 2.5, 2048}, "gemini-2.5-flash-lite*": {0.1, 0.4, 2048},
	}},
	{0.05, 1, map[string]listPrice{
		"gemini-4-neon*": {3, 15, 4096}, "gemini-4-hydrogen*": {1.5, 7.5, 4096},
	}},
	{0.25, 1, map[string]listPrice{
		"gemini-2.0-flash*": {0.1, 0.4, 4096},
	}},
	// https://api-docs.deepseek.com/quick_start/pricing; the prices depend on the hour, their relations do not.
	{0.02, 1, map[string]listPrice{"deepseek-flash*": {}, "deepseek-v4-flash*": {}}},
	{0.033, 1, map[string]listPrice{"deepseek-v4-pro*": {}}},
}
