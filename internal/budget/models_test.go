package budget

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func newModels(t *testing.T, overrides ...Override) Models {
	t.Helper()
	models, err := NewModels(overrides...)
	if err != nil {
		t.Fatal(err)
	}
	return models
}

func TestLookupBuiltin(t *testing.T) {
	models := newModels(t)
	for name, want := range map[string]struct {
		entry, tokenizer string
		window           uint64
	}{
		"gpt-4o":                            {"gpt-4o*", TokenizerO200K, 128_000},
		"gpt-4o-mini-2024-07-18":            {"gpt-4o-mini*", TokenizerO200K, 128_000},
		"GPT-4.1-nano":                      {"gpt-4.1-nano*", TokenizerO200K, 1_047_576},
		"gpt-5-codex":                       {"gpt-5-codex*", TokenizerO200K, 400_000},
		"o3-mini":                           {"o3-mini*", TokenizerO200K, 200_000},
		"o1-mini-2024-09-12":                {"o1-mini*", TokenizerO200K, 128_000},
		"gpt-4":                             {"gpt-4", TokenizerCL100K, 8_192},
		"gpt-4-0613":                        {"gpt-4-*", TokenizerCL100K, 8_192},
		"gpt-4-32k-0613":                    {"gpt-4-32k*", TokenizerCL100K, 32_768},
		"gpt-3.5-turbo-0125":                {"gpt-3.5-turbo*", TokenizerCL100K, 16_385},
		"claude-3-5-sonnet-20241022":        {"claude-3*", TokenizerHeuristic, 200_000},
		"claude-opus-6":                     {"claude-*", TokenizerHeuristic, 200_000},
		"anthropic/claude-opus-4.1":         {"claude-opus-4*", TokenizerHeuristic, 200_000},
		"claude-opus-4-7":                   {"claude-opus-4-7*", TokenizerHeuristic, 200_000},
		"claude-opus-4-8":                   {"claude-opus-4-8*", TokenizerHeuristic, 1_000_000},
		"anthropic/claude-opus-5.5":         {"claude-opus-5-5*", TokenizerHeuristic, 1_000_000},
		"claude-fable-5-2":                  {"claude-fable-5-2*", TokenizerHeuristic, 1_000_000},
		"claude-haiku-5-5":                  {"claude-haiku-5-5*", TokenizerHeuristic, 1_000_000},
		"gpt-6.2-sol":                       {"gpt-6.2-sol*", TokenizerHeuristic, 922_000},
		"gpt-6-cyber":                       {"gpt-6*", TokenizerHeuristic, 922_000},
		"us.anthropic.claude-sonnet-4-v1:0": {"claude-sonnet-4*", TokenizerHeuristic, 200_000},
		"gemini-2.5-pro":                    {"gemini-2.5-pro*", TokenizerHeuristic, 1_048_576},
		"openrouter/deepseek/deepseek-chat": {"deepseek-*", TokenizerHeuristic, 131_072},
		"deepseek-v4-pro":                   {"deepseek-v4-pro*", TokenizerHeuristic, 1_000_000},
		"Qwen/Qwen3-Coder-480B-A35B":        {"qwen3-coder*", TokenizerHeuristic, 262_144},
		"meta-llama/Llama-3.3-70B-Instruct": {"llama-3.3*", TokenizerHeuristic, 131_072},
		"mistral-large-2411":                {"mistral-large*", TokenizerHeuristic, 131_072},
		"glm-4.6":                           {"glm-4.6*", TokenizerHeuristic, 204_800},
		"moonshotai/kimi-k2-0905-preview":   {"kimi-k2-0905*", TokenizerHeuristic, 262_144},
		"grok-4-fast-reasoning":             {"grok-4-fast*", TokenizerHeuristic, 2_000_000},
		// As routers and clouds name them.
		"Claude Opus 4.8":                               {"claude-opus-4-8*", TokenizerHeuristic, 1_000_000},
		"claude-4.8-opus-thinking":                      {"claude-opus-4-8*", TokenizerHeuristic, 1_000_000},
		"claude-4-sonnet":                               {"claude-sonnet-4*", TokenizerHeuristic, 200_000},
		"anthropic--claude-4.5-opus":                    {"claude-opus-4-5*", TokenizerHeuristic, 200_000},
		"claude-opus-4@20250514":                        {"claude-opus-4*", TokenizerHeuristic, 200_000},
		"vertex_ai/claude-haiku-4-5@20251001":           {"claude-haiku-4*", TokenizerHeuristic, 200_000},
		"global.anthropic.claude-opus-4-8":              {"claude-opus-4-8*", TokenizerHeuristic, 1_000_000},
		"us-gov.anthropic.claude-opus-5-5-v1:0":         {"claude-opus-5-5*", TokenizerHeuristic, 1_000_000},
		"bedrock/us-east-1/anthropic.claude-instant-v1": {"claude-instant*", TokenizerHeuristic, 100_000},
		"arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-8": {"claude-opus-4-8*", TokenizerHeuristic, 1_000_000},
		"databricks-claude-opus-4-8":                       {"claude-opus-4-8*", TokenizerHeuristic, 1_000_000},
		"databricks-meta-llama-3-3-70b-instruct":           {"llama-3.3*", TokenizerHeuristic, 131_072},
		"deepseek.v3-v1:0":                                 {"deepseek-*", TokenizerHeuristic, 131_072},
		"us.deepseek.r1-v1:0":                              {"deepseek-r1*", TokenizerHeuristic, 131_072},
		"deepseek-ai/DeepSeek-V3.2":                        {"deepseek-*", TokenizerHeuristic, 131_072},
		"zai-glm-4.7":                                      {"glm-4.7*", TokenizerHeuristic, 204_800},
		"openrouter/z-ai/glm-4.6:free":                     {"glm-4.6*", TokenizerHeuristic, 204_800},
		"accounts/fireworks/models/glm-4p7":                {"glm-4.7*", TokenizerHeuristic, 204_800},
		"accounts/fireworks/models/kimi-k2p6":              {"kimi-k2.6*", TokenizerHeuristic, 262_144},
		"accounts/fireworks/models/llama-v3p1-8b-instruct": {"llama-v3.1*", TokenizerHeuristic, 131_072},
		"moonshotai/Kimi-K2-Thinking:novita":               {"kimi-k2-thinking*", TokenizerHeuristic, 262_144},
		"moonshotai.kimi-k2.5":                             {"kimi-k2.5*", TokenizerHeuristic, 262_144},
		"us.meta.llama3-3-70b-instruct-v1:0":               {"llama3.3*", TokenizerHeuristic, 131_072},
		"meta.llama3-70b-instruct-v1:0":                    {"llama3*", TokenizerHeuristic, 8_192},
		"Meta-Llama-3.3-70B-Instruct":                      {"llama-3.3*", TokenizerHeuristic, 131_072},
		"mistral.pixtral-large-2502-v1:0":                  {"pixtral*", TokenizerHeuristic, 131_072},
		"mistral.voxtral-small-24b-2507":                   {"mistral-*", TokenizerHeuristic, 32_768},
		"qwen.qwen3-coder-480b-a35b-v1:0":                  {"qwen3-coder*", TokenizerHeuristic, 262_144},
		"us.amazon.nova-pro-v1:0":                          {"amazon.nova-pro*", TokenizerHeuristic, 300_000},
		"openai.gpt-oss-120b-1:0":                          {"gpt-oss*", TokenizerO200K, 131_072},
		"@cf/openai/gpt-oss-20b":                           {"gpt-oss*", TokenizerO200K, 131_072},
		"ft:gpt-4o-mini-2024-07-18:acme::abc":              {"gpt-4o-mini*", TokenizerO200K, 128_000},
		"openai/gpt-4:extended":                            {"gpt-4", TokenizerCL100K, 8_192},
		"azure/gpt-4-1-mini":                               {"gpt-4.1-mini*", TokenizerO200K, 1_047_576},
		"gpt-4-1106-preview":                               {"gpt-4-1106*", TokenizerCL100K, 128_000},
		"gpt-5:online":                                     {"gpt-5", TokenizerO200K, 400_000},
		"gpt-5.2-codex":                                    {"gpt-5.2*", TokenizerO200K, 400_000},
		"azure/o4-mini-2025-04-16":                         {"o4-mini*", TokenizerO200K, 200_000},
		"models/gemini-2.5-flash":                          {"gemini-2.5-flash*", TokenizerHeuristic, 1_048_576},
		"publishers/google/models/gemini-3-1-pro":          {"gemini-3.1-pro*", TokenizerHeuristic, 1_048_576},
		"qwen/qwq-32b":                                     {"qwq*", TokenizerHeuristic, 131_072},
		"MiniMaxAI/MiniMax-M2.1":                           {"minimax-m2*", TokenizerHeuristic, 204_800},
		"minimax.minimax-m2":                               {"minimax-m2*", TokenizerHeuristic, 204_800},
		"xai/grok-4-1-fast":                                {"grok-4-1-fast*", TokenizerHeuristic, 2_000_000},
		DefaultModel:                                       {DefaultModel, TokenizerHeuristic, 128_000},
	} {
		got, ok := models.Lookup(name)
		if !ok || got.Name != want.entry || got.Tokenizer != want.tokenizer || got.Window != want.window {
			t.Errorf("%s: %+v (%v), want %+v", name, got, ok, want)
		}
	}
	for _, unknown := range []string{"", "gpt", "my-model", "vendor/", "claude", "gpt-4x", "marco-o1", "my-gpt-4o", "qwen/o-1", "gpt-4o/o-1", "deepseek.", "us.", "zai-gpt-4o", "google.claude-3", "ft:", "meta-model-2"} {
		got, ok := models.Lookup(unknown)
		if ok || got.Name != DefaultModel {
			t.Errorf("%q: %+v, %v; want the default and false", unknown, got, ok)
		}
	}
}

func TestBuiltinModelsAreValid(t *testing.T) {
	names := map[string]bool{}
	for _, m := range builtinModels {
		if err := m.Validate(); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		if names[m.Name] || m.Name != strings.ToLower(m.Name) {
			t.Errorf("%s stands twice or is not in lower case", m.Name)
		}
		names[m.Name] = true
	}
	all := newModels(t).All()
	if len(all) != len(builtinModels) || !slices.IsSortedFunc(all, func(a, b Model) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("All lists %d of %d models, or not by name", len(all), len(builtinModels))
	}
}

// TestMakers: names of hosts are read with the makers of all built-in models.
func TestMakers(t *testing.T) {
	var providers []string
	for _, m := range builtinModels {
		if m.Provider != "" && !slices.Contains(providers, m.Provider) {
			providers = append(providers, m.Provider)
		}
	}
	if slices.Sort(providers); !slices.Equal(providers, makers) {
		t.Errorf("providers are %q, makers %q", providers, makers)
	}
}

func TestReturnedReasoning(t *testing.T) {
	models := newModels(t)
	for name, want := range map[string]bool{
		"deepseek-v4-pro": true, "deepseek/deepseek-chat": true, "deepseek-r1-distill-llama-70b": false,
		"kimi-k2.6": true, "kimi-k2-thinking-turbo": true, "moonshotai/kimi-k2-instruct-0905": false, "kimi-k2-0905-preview": false,
		"mimo-v2.5-pro": true, "z-ai/glm-4.7": true, "glm-5.1": true, "glm-4-plus": false, "moonshot-v1-8k": false,
		// Other hosts of a model, whose names have its maker, need not take it.
		"zai-glm-4.7": false, "deepseek.v3-v1:0": false, "us.deepseek.r1-v1:0": false, "moonshotai.kimi-k2.5": false,
		"accounts/fireworks/models/kimi-k2p6": true, "accounts/fireworks/models/glm-4p7": true, "z-ai/glm-4.6:free": true,
		"gpt-5": false, "claude-opus-5": false, "gemini-3-pro": false, "qwen3-max": false, "house-model": false, "": false,
	} {
		if got, _ := models.Lookup(name); got.ReturnReasoning != want {
			t.Errorf("%s: %t, want %t (by %s)", name, got.ReturnReasoning, want, got.Name)
		}
	}
}

// TestMarginsOfClaude: a model that the table does not know has the tokenizer of the later ones.
func TestMarginsOfClaude(t *testing.T) {
	models := newModels(t)
	for name, want := range map[string]float64{
		"claude-2.1": claudeMargin, "claude-3-7-sonnet-latest": claudeMargin, "claude-opus-4-6": claudeMargin,
		"claude-4-5-sonnet": claudeMargin, "claude-haiku-4-5@20251001": claudeMargin,
		"claude-opus-4-7": claudeLaterMargin, "claude-opus-6": claudeLaterMargin, "us.anthropic.claude-next-v1:0": claudeLaterMargin,
	} {
		if m, _ := models.Lookup(name); m.Margin != want {
			t.Errorf("%s: %s with a margin of %v, want %v", name, m.Name, m.Margin, want)
		}
	}
}

func TestOverridesWin(t *testing.T) {
	none, half, long := 0.0, 0.5, uint64(4096)
	yes, no := true, false
	models := newModels(t,
		Override{Name: "gpt-4o*", Window: 64_000},
		Override{Name: "GPT-4o-mini", Margin: &none, Provider: "azure"},
		Override{Name: "local/*", Window: 16_000, Tokenizer: TokenizerCL100K},
		Override{Name: "claude-*", Window: 1_000_000},
		Override{Name: "claude-opus-*", Tokenizer: TokenizerO200K},
		Override{Name: "default", Window: 32_000},
		Override{Name: "claude-sonnet-4.5", Window: 900_000},
		Override{Name: "eu.anthropic.claude-sonnet-*", Window: 150_000},
		Override{Name: "cheap", Prices: PriceOverride{CacheRead: &none, Input: &half}},
		Override{Name: "gpt-4.1-mini-x", Prices: PriceOverride{MinCachedTokens: &long}},
		Override{Name: "house-thinker", Window: 64_000, ReturnReasoning: &yes},
		Override{Name: "deepseek-chat", ReturnReasoning: &no},
		Override{Name: "kimi-k2.5", Window: 100_000},
	)
	claude := Prices{CacheRead: 0.1, CacheWrite: 1.25, MinCachedTokens: 1024}
	sonnet := Prices{Input: 3, CacheRead: 0.1, CacheWrite: 1.25, Output: 5, MinCachedTokens: 1024}
	gpt4o := Prices{Input: 2.5, CacheRead: 0.5, CacheWrite: 1, Output: 4, MinCachedTokens: 1024}
	for name, want := range map[string]Model{
		"gpt-4o":                              {"gpt-4o*", "openai", 64_000, TokenizerO200K, exactMargin, gpt4o, false},
		"gpt-4o-mini":                         {"GPT-4o-mini", "azure", 128_000, TokenizerO200K, 0, Prices{0.15, 0.5, 1, 4, 1024}, false},
		"local/llama3":                        {"local/*", "", 16_000, TokenizerCL100K, exactMargin, DefaultPrices(), false},
		"claude-opus-4":                       {"claude-opus-*", "anthropic", 200_000, TokenizerO200K, exactMargin, claude, false},
		"us.anthropic.claude-sonnet-4-5":      {"claude-sonnet-4.5", "anthropic", 900_000, TokenizerHeuristic, claudeMargin, sonnet, false},
		"eu.anthropic.claude-sonnet-4-6-v1:0": {"eu.anthropic.claude-sonnet-*", "anthropic", 150_000, TokenizerHeuristic, claudeLaterMargin, claude, false},
		// An override goes before a longer built-in prefix.
		"claude-2.0": {"claude-*", "anthropic", 1_000_000, TokenizerHeuristic, claudeLaterMargin, claude, false},
		"x/gpt-4o":   {"gpt-4o*", "openai", 64_000, TokenizerO200K, exactMargin, gpt4o, false},
		"default":    {"default", "", 32_000, TokenizerHeuristic, heuristicMargin, DefaultPrices(), false},
		// Prices that are not given stay.
		"cheap":          {"cheap", "", 128_000, TokenizerHeuristic, heuristicMargin, Prices{0.5, 0, 1.25, 0, 0}, false},
		"gpt-4.1-mini-x": {"gpt-4.1-mini-x", "openai", 1_047_576, TokenizerO200K, exactMargin, Prices{0.4, 0.25, 1, 4, 4096}, false},
		"house-thinker":  {"house-thinker", "", 64_000, TokenizerHeuristic, heuristicMargin, DefaultPrices(), true},
		"deepseek-chat":  {"deepseek-chat", "deepseek", 131_072, TokenizerHeuristic, heuristicMargin, DefaultPrices(), false},
		"kimi-k2.5":      {"kimi-k2.5", "moonshot", 100_000, TokenizerHeuristic, heuristicMargin, DefaultPrices(), true},
	} {
		if got, ok := models.Lookup(name); !ok || got != want {
			t.Errorf("%s: %+v (%v), want %+v", name, got, ok, want)
		}
	}
	if got, ok := models.Lookup("unheard-of"); ok || got.Window != 32_000 {
		t.Errorf("unheard-of: %+v, %v; want the overridden default", got, ok)
	}
	// Ten of the thirteen are new names.
	if got, want := len(models.All()), len(builtinModels)+10; got != want {
		t.Errorf("All lists %d models, want %d", got, want)
	}
}

func TestBadOverridesNameTheField(t *testing.T) {
	negative, one, many, most, long := -0.1, 1.0, 10.5, 1e6+1, uint64(mostMinCached+1)
	nan := negative - negative
	nan /= nan
	for _, c := range []struct {
		field     string
		overrides []Override
	}{
		{"models[0].name", []Override{{Window: 5}}},
		{"models[1].name", []Override{{Name: "a"}, {Name: "a*b"}}},
		{"models[0].name", []Override{{Name: "a**"}}},
		{"models[1].name", []Override{{Name: "a"}, {Name: "A"}}},
		{"models[1].name", []Override{{Name: "a-4-5*"}, {Name: "a-4.5*"}}},
		{"models[0].tokenizer", []Override{{Name: "a", Tokenizer: "p50k_base"}}},
		{"models[0].margin", []Override{{Name: "a", Margin: &negative}}},
		{"models[0].margin", []Override{{Name: "a", Margin: &one}}},
		{"models[2].margin", []Override{{Name: "a"}, {Name: "b"}, {Name: "c", Margin: &nan}}},
		{"models[0].prices.input", []Override{{Name: "a", Prices: PriceOverride{Input: &negative}}}},
		{"models[0].prices.input", []Override{{Name: "a", Prices: PriceOverride{Input: &most}}}},
		{"models[0].prices.cache_read", []Override{{Name: "a", Prices: PriceOverride{CacheRead: &negative}}}},
		{"models[0].prices.cache_read", []Override{{Name: "a", Prices: PriceOverride{CacheRead: &many}}}},
		{"models[0].prices.cache_write", []Override{{Name: "a", Prices: PriceOverride{CacheWrite: &negative}}}},
		{"models[0].prices.cache_write", []Override{{Name: "a", Prices: PriceOverride{CacheWrite: &many}}}},
		{"models[0].prices.output", []Override{{Name: "a", Prices: PriceOverride{Output: &nan}}}},
		{"models[0].prices.output", []Override{{Name: "a", Prices: PriceOverride{Output: &negative}}}},
		{"models[0].prices.output", []Override{{Name: "a", Prices: PriceOverride{Output: &most}}}},
		{"models[0].prices.min_cached_tokens", []Override{{Name: "a", Prices: PriceOverride{MinCachedTokens: &long}}}},
	} {
		_, err := NewModels(c.overrides...)
		var bad *ModelError
		if !errors.As(err, &bad) || bad.Field != c.field || !strings.HasPrefix(err.Error(), c.field+": ") {
			t.Errorf("%+v: %v, want an error of %s", c.overrides, err, c.field)
		}
	}
	for _, prices := range []Prices{{CacheWrite: 1}, {1e6, 1, 10, 1e3, 1_000_000_000}} { // the least and the most
		if err := (Model{"a*", "", 1, TokenizerHeuristic, 0, prices, false}).Validate(); err != nil {
			t.Errorf("%+v: %v", prices, err)
		}
	}
	for field, m := range map[string]Model{
		"name":      {"", "", 1, TokenizerHeuristic, 0, DefaultPrices(), false},
		"window":    {"a", "", 0, TokenizerHeuristic, 0, DefaultPrices(), false},
		"tokenizer": {"a", "", 1, "", 0, DefaultPrices(), false},
		"margin":    {"a", "", 1, TokenizerHeuristic, 1.5, DefaultPrices(), false},
	} {
		if err := m.Validate(); err == nil || err.Field != field {
			t.Errorf("%+v: %v, want an error of %s", m, err, field)
		}
	}
}
