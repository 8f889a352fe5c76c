package budget

import (
	"slices"
	"strings"
)

// The margins, unless the configuration or the request gives one.
const (
	// exactMargin is room for the provider's framing of messages and tools, which is not public. The text itself is
	// counted exactly.
	exactMargin = 0.02
	// heuristicMargin is for tokenizers that make up to a fifth more tokens of a text than o200k_base. The
	// heuristic's weights already include half of that.
	heuristicMargin = 0.10
	// claudeMargin is larger, because recorded sessions with Claude Sonnet and Opus 4.x were billed 1.1 to 1.5 times
	// the tokens of o200k_base for a tool result, and 1.23 on average.
	claudeMargin = 0.15
	// claudeLaterMargin: the tokenizer of Claude Opus 4.7 and all later models makes about 1.3 times the tokens of the
	// one before it, by its documentation.
	claudeLaterMargin = 0.35
)

// defaultMargin returns the margin of an override that names another tokenizer.
func defaultMargin(tokenizer string) float64 {
	if tokenizer == TokenizerHeuristic {
		return heuristicMargin
	}
	return exactMargin
}

// The built-in entries, by provider. Windows are the ones that providers publish for their own API, without options
// for a larger one. If models of one family differ, the prefix has the smallest window of its models.
var builtinModels = reasoning(priced(slices.Concat(
	[]Model{{Name: DefaultModel, Window: 128_000, Tokenizer: TokenizerHeuristic, Margin: heuristicMargin, Prices: DefaultPrices()}},
	family("openai", TokenizerO200K, exactMargin, map[string]uint64{
		"gpt-5*": 400_000, "gpt-5-chat*": 128_000, "gpt-5.1-chat*": 128_000, "gpt-5.2-chat*": 128_000,
		"gpt-4.1*": 1_047_576, "gpt-4.5*": 128_000, "gpt-4o*": 128_000, "chatgpt-4o*": 128_000, "gpt-oss*": 131_072,
		"o1*": 200_000, "o1-mini*": 128_000, "o1-preview*": 128_000, "o3*": 200_000, "o4*": 200_000,
		"codex-*": 200_000, "computer-use-preview*": 8_192,
	}),
	// A prompt may take so much of the window of 1,050,000. Their tokenizer is not known.
	family("openai", TokenizerHeuristic, heuristicMargin, map[string]uint64{"gpt-6*": 922_000}),
	family("openai", TokenizerCL100K, exactMargin, map[string]uint64{
		"gpt-4": 8_192, "gpt-4-*": 8_192, "gpt-4-32k*": 32_768, "gpt-4-turbo*": 128_000,
		"gpt-4-1106*": 128_000, "gpt-4-0125*": 128_000, "gpt-4-vision*": 128_000,
		"gpt-3.5-turbo*": 16_385, "gpt-3.5-turbo-instruct*": 4_096, "gpt-35-turbo*": 16_385,
	}),
	family("anthropic", TokenizerHeuristic, claudeMargin, map[string]uint64{
		"claude-2*": 200_000, "claude-2.0*": 100_000, "claude-instant*": 100_000, "claude-3*": 200_000,
		"claude-opus-4*": 200_000, "claude-sonnet-4*": 200_000, "claude-haiku-4*": 200_000,
	}),
	family("anthropic", TokenizerHeuristic, claudeLaterMargin, map[string]uint64{
		"claude-*": 200_000, "claude-opus-4-7*": 200_000, "claude-opus-4-8*": 1_000_000,
		"claude-opus-5*": 1_000_000, "claude-sonnet-5*": 1_000_000, "claude-haiku-5*": 1_000_000,
		"claude-fable-5*": 1_000_000, "claude-mythos-5*": 1_000_000,
	}),
	family("google", TokenizerHeuristic, heuristicMargin, map[string]uint64{
		"gemini-*": 1_048_576, "gemini-1.5-pro*": 2_097_152, "gemini-1.0*": 32_760, "gemini-pro": 32_760,
		"gemma-2*": 8_192, "gemma-3*": 131_072, "gemma-3-1b*": 32_768, "gemma-3n*": 32_768,
	}),
	family("deepseek", TokenizerHeuristic, heuristicMargin, map[string]uint64{
		"deepseek-*": 131_072, "deepseek-r1*": 131_072, "deepseek-v4*": 1_000_000, "deepseek-flash*": 1_000_000,
	}),
	family("qwen", TokenizerHeuristic, heuristicMargin, map[string]uint64{
		"qwen*": 32_768, "qwq*": 131_072, "qwen2.5*": 131_072, "qwen3*": 131_072, "qwen3-coder*": 262_144,
		"qwen3-max*": 262_144, "qwen3-next*": 262_144, "qwen-plus*": 131_072, "qwen-turbo*": 131_072,
	}),
	family("meta", TokenizerHeuristic, heuristicMargin, map[string]uint64{
		"llama-3*": 8_192, "llama3*": 8_192, "llama-v3*": 8_192,
		"llama-3.1*": 131_072, "llama3.1*": 131_072, "llama-v3.1*": 131_072,
		"llama-3.2*": 131_072, "llama3.2*": 131_072, "llama-v3.2*": 131_072,
		"llama-3.3*": 131_072, "llama3.3*": 131_072, "llama-v3.3*": 131_072,
		"llama-4*": 1_048_576, "llama4*": 1_048_576,
	}),
	family("mistral", TokenizerHeuristic, heuristicMargin, map[string]uint64{
		"mistral-*": 32_768, "mistral-large*": 131_072, "mistral-medium*": 131_072, "mistral-small*": 32_768,
		"mistral-small-3.1*": 131_072, "mistral-small-3.2*": 131_072, "mistral-small-25*": 131_072,
		"mistral-small-latest": 131_072, "mistral-nemo*": 131_072, "open-mistral-nemo*": 131_072,
		"ministral*": 131_072, "magistral*": 40_960, "devstral*": 131_072, "codestral*": 262_144, "codestral-22b*": 32_768,
		"pixtral*": 131_072, "mixtral-8x7b*": 32_768, "mixtral-8x22b*": 65_536,
	}),
	family("zai", TokenizerHeuristic, heuristicMargin, map[string]uint64{
		"glm-4*": 131_072, "glm-4.5*": 131_072, "glm-4.6*": 204_800, "glm-4.7*": 204_800, "glm-5*": 204_800,
	}),
	family("xiaomi", TokenizerHeuristic, heuristicMargin, map[string]uint64{
		"mimo-*": 262_144, "mimo-v2.5*": 1_048_576, "mimo-v2.6*": 1_048_576,
	}),
	family("moonshot", TokenizerHeuristic, heuristicMargin, map[string]uint64{
		"kimi-*": 131_072, "kimi-k2-0711*": 131_072, "kimi-k2-instruct*": 131_072, "kimi-k2-0905*": 262_144, "kimi-k2-thinking*": 262_144, "kimi-k2.5*": 262_144, "kimi-k2.6*": 262_144, "kimi-k2.7*": 262_144,
		"moonshot-v1-8k*": 8_192, "moonshot-v1-32k*": 32_768, "moonshot-v1-128k*": 131_072,
	}),
	family("xai", TokenizerHeuristic, heuristicMargin, map[string]uint64{
		"grok-*": 131_072, "grok-4*": 262_144, "grok-4-fast*": 2_000_000, "grok-4-1-fast*": 2_000_000, "grok-code-fast*": 262_144,
	}),
	family("minimax", TokenizerHeuristic, heuristicMargin, map[string]uint64{
		"minimax-m1*": 1_000_000, "minimax-m2*": 204_800,
	}),
	family("cohere", TokenizerHeuristic, heuristicMargin, map[string]uint64{
		"command-*": 4_096, "command-r*": 128_000, "command-a*": 256_000,
	}),
	family("amazon", TokenizerHeuristic, heuristicMargin, map[string]uint64{
		"amazon.nova-*": 128_000, "amazon.nova-lite*": 300_000, "amazon.nova-pro*": 300_000, "amazon.nova-premier*": 1_000_000,
	}),
)))

// reasoning marks the models whose reasoning must be returned; docs/format.md names the sources. Earlier models of the same
// providers do not reason, or not between calls.
func reasoning(models []Model) []Model {
	returned := []string{"deepseek-", "kimi-", "mimo-", "glm-4.5", "glm-4.6", "glm-4.7", "glm-5"}
	not := []string{"deepseek-r1", "kimi-k2-0711", "kimi-k2-0905", "kimi-k2-instruct"}
	begins := func(prefixes []string, name string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	}
	for i := range models {
		models[i].ReturnReasoning = begins(returned, models[i].Name) && !begins(not, models[i].Name)
	}
	return models
}

// priced sets the prices of models from the price table. A name in the price table that has no entry in models gets
// one: a copy of the entry that it matches.
func priced(models []Model) []Model {
	registry := Models{builtin: newTable(models)}
	for _, family := range priceTable {
		for name, p := range family.prices {
			prices := Prices{Input: p.input, CacheRead: family.cacheRead, CacheWrite: family.cacheWrite, MinCachedTokens: p.minCached}
			if p.input > 0 {
				prices.Output = p.output / p.input
			}
			at := slices.IndexFunc(models, func(m Model) bool { return m.Name == name })
			if at < 0 {
				model, _ := registry.Lookup(strings.TrimSuffix(name, "*"))
				model.Name = name
				models = append(models, model)
				at = len(models) - 1
			}
			models[at].Prices = prices
		}
	}
	return models
}

// family lists the models of one provider that share a tokenizer, by window.
func family(provider, tokenizer string, margin float64, windows map[string]uint64) []Model {
	models := make([]Model, 0, len(windows))
	for name, window := range windows {
		models = append(models, Model{Name: name, Provider: provider, Window: window, Tokenizer: tokenizer, Margin: margin, Prices: DefaultPrices()})
	}
	return models
}
