package provider_test

import (
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

func TestOf(t *testing.T) {
	for model, want := range map[string]provider.Provider{
		"claude-sonnet-4-5-20250929":            provider.Anthropic,
		"Claude 3.7 Sonnet":                     provider.Anthropic,
		"us.anthropic.claude-opus-4-1-v1:0":     provider.Anthropic,
		"openrouter/anthropic/claude-haiku-4.5": provider.Anthropic,
		"gpt-5-codex":                           provider.OpenAI,
		"chatgpt-4o-latest":                     provider.OpenAI,
		"codex-mini-latest":                     provider.OpenAI,
		"o3":                                    provider.OpenAI,
		"openai/o4-mini-2025-04-16":             provider.OpenAI,
		"openai.gpt-oss-120b-1:0":               provider.OpenAI,
		"ft:o4-mini-2025-04-16:acme::abc":       provider.OpenAI,
		"gemini-3-pro-preview":                  provider.Gemini,
		"models/gemini-2.5-flash":               provider.Gemini,
		"google/Gemini-2.5-Pro":                 provider.Gemini,
		"":                                      provider.Unknown,
		"AIDC-AI/marco-o1":                      provider.Unknown,
		"olmo-2":                                provider.Unknown,
		"deepseek-reasoner":                     provider.Unknown,
		"grok-4":                                provider.Unknown,
		"qwen3-claude-gpt-distill":              provider.Unknown,
		"gemma-3-27b":                           provider.Unknown,
		"claudette":                             provider.Unknown,
	} {
		if got := provider.Of(model); got != want {
			t.Errorf("%q is %v's, not %v's", model, got, want)
		}
	}
}

func TestOtherMaker(t *testing.T) {
	for _, c := range []struct {
		one, other string
		want       bool
	}{
		{"google/gemini-3-pro", "google/gemini-3-flash", false},
		{"google/gemini-3-pro", "anthropic/claude-opus-5", true},
		{"gemini-3-pro", "openai/gpt-5", true},
		{"openrouter/x-ai/grok-4", "x-ai/grok-4-0709", false},
		{"x-ai/grok-4", "openai/gpt-5", true},
		{"x-ai/grok-4", "qwen/qwen3-max", true},
		{"openrouter/auto", "openai/gpt-5", false},
		{"smart", "google/gemini-3-pro", false},
		{"", "google/gemini-3-pro", false},
	} {
		if got := provider.OtherMaker(c.one, c.other); got != c.want || provider.OtherMaker(c.other, c.one) != c.want {
			t.Errorf("%q and %q: %t", c.one, c.other, got)
		}
	}
}

func TestBinds(t *testing.T) {
	for model, want := range map[string]bool{
		"claude-fable-5-1":                            true,
		"claude-mythos-5-2-20261015":                  true,
		"claude-opus-5-5":                             true,
		"anthropic/claude-sonnet-5.5":                 true,
		"us.anthropic.claude-haiku-5-5-20261001-v1:0": true,
		"Claude Opus 6":                               true,
		"claude-opus-12":                              true,
		"claude-fable-5":                              false,
		"claude-opus-5-20260901":                      false,
		"claude-opus-4-8":                             false,
		"claude-3-5-sonnet-20241022":                  false,
		"us.anthropic.claude-opus-4-1-v1:0":           false,
		"claude-mythos-preview":                       false,
		"claude-sonnet-latest":                        false,
		"gpt-5.5":                                     false,
		"":                                            false,
	} {
		if got := provider.Binds(model); got != want {
			t.Errorf("%q binds: %v", model, got)
		}
	}
}

func TestOfBlock(t *testing.T) {
	signed := eventlog.Thinking{Text: "hm", Signature: "s"}
	redacted := eventlog.Thinking{RedactedData: "r"}
	encrypted := eventlog.Thinking{EncryptedContent: "e"}
	for _, c := range []struct {
		name  string
		block eventlog.Thinking
		model string
		want  provider.Provider
	}{
		{"signed by claude", signed, "claude-opus-4", provider.Anthropic},
		{"signed by gemini", signed, "gemini-3-pro", provider.Gemini},
		{"signed by gpt", signed, "gpt-5", provider.OpenAI},
		{"signed by nobody known", signed, "", provider.Unknown},
		{"signed by another", signed, "grok-4", provider.Unknown},
		{"redacted", redacted, "", provider.Anthropic},
		{"redacted by claude", redacted, "claude-3-7", provider.Anthropic},
		{"redacted by gpt", redacted, "gpt-5", provider.Unknown},
		{"encrypted", encrypted, "", provider.OpenAI},
		{"encrypted by o3", encrypted, "o3", provider.OpenAI},
		{"encrypted by a gateway to claude", encrypted, "claude-sonnet-4", provider.Unknown},
		{"encrypted by another", encrypted, "grok-4", provider.Unknown},
		{"by a host, of claude", eventlog.Thinking{Text: "hm", Signature: `{"reasoning_details":[]}`}, "anthropic/claude-opus-4", provider.Host},
		{"by a host, of nobody known", eventlog.Thinking{Signature: `{"thinking_blocks":[]}`, EncryptedContent: "e"}, "", provider.Host},
		{"both", eventlog.Thinking{Signature: "s", EncryptedContent: "e"}, "gemini-3-pro", provider.Unknown},
		{"open", eventlog.Thinking{Text: "hm"}, "claude-opus-4", provider.Anthropic},
	} {
		if got := provider.OfBlock(c.block, c.model); got != c.want {
			t.Errorf("%s: %v, not %v", c.name, got, c.want)
		}
	}
}

func TestMaker(t *testing.T) {
	signed := eventlog.Thinking{Text: "hm", Signature: "s"}
	redacted := eventlog.Thinking{RedactedData: "r"}
	encrypted := eventlog.Thinking{EncryptedContent: "e"}
	for _, c := range []struct {
		name, model string
		blocks      []eventlog.Block
		want        provider.Provider
		known       bool
	}{
		{"by its name", "gemini-3-pro", []eventlog.Block{redacted}, provider.Gemini, true},
		{"by the name of nobody known", "grok-4", []eventlog.Block{redacted}, provider.Unknown, true},
		{"signed", "", []eventlog.Block{signed}, provider.Unknown, false},
		{"nothing", "", nil, provider.Unknown, false},
		{"signed and redacted", "", []eventlog.Block{signed, eventlog.Text{Text: "x"}, redacted}, provider.Anthropic, true},
		{"encrypted and signed", "", []eventlog.Block{encrypted, signed, encrypted}, provider.OpenAI, true},
		{"by a host", "", []eventlog.Block{eventlog.Thinking{Signature: `{"thinking_blocks":[]}`}}, provider.Unknown, false},
		{"by a host, and encrypted", "", []eventlog.Block{eventlog.Thinking{Signature: `{"thinking_blocks":[]}`}, encrypted}, provider.OpenAI, true},
		{"redacted and encrypted", "", []eventlog.Block{redacted, encrypted, redacted}, provider.Unknown, true},
	} {
		got := provider.Maker(c.model, c.blocks)
		if provider.Of(got) != c.want || (got != "") != c.known {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func TestMembers(t *testing.T) {
	for _, test := range []struct {
		by, json string
		want     bool
	}{
		{"openai", `{"phase": "commentary"}`, true},
		{"anthropic", `{"caller":{"type":"direct"}}`, true},
		{"openai", `{"type":"refusal","refusal":"no"}`, false},
		{"openai", `{"type":null,"phase":"commentary"}`, false},
		{"openai", `{}`, false},
		{"openai", `null`, false},
		{"openai", `["phase"]`, false},
		{"openai", `{"phase":`, false},
		{"openai", `{"namespace":"` + strings.Repeat("n", 256<<10) + `"}`, false},
		{"google", `{"thoughtSignature":"c2ln"}`, false}, // a seal
		{"", `{"phase":"commentary"}`, false},
	} {
		if _, got := provider.Members(eventlog.ProviderBlock{Provider: test.by, JSON: test.json}); got != test.want {
			t.Errorf("%s %.40s: %v", test.by, test.json, got)
		}
	}
}
