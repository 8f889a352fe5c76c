package modelhttp

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestWithoutThinking(t *testing.T) {
	for in, want := range map[string]string{
		"text":                               "text",
		"  text\n":                           "text",
		"<think>a</think>text":               "text",
		"\n<think>\na\nb\n</think>\n\ntext ": "text",
		"<think></think>\n\ntext":            "text",
		"<thinking>a</thinking>\ntext":       "text",
		"[THINK]a[/THINK]text":               "text",
		"reasoning\n</think>\n\ntext":        "text",
		"</think>\ntext":                     "text",
		"<think>never ends":                  "",
		"<think>a</think>":                   "",
		// What a summary says of such marks is text.
		"The parser drops <think>x</think>.":        "The parser drops <think>x</think>.",
		"It strips </think> at the start.":          "It strips </think> at the start.",
		"<think>a</think>see\n<think>\nb\n</think>": "see\n<think>\nb\n</think>",
		"Example:\n<think>\nb\n</think>\nend":       "Example:\n<think>\nb\n</think>\nend",
		"":                                          "",
	} {
		if got := WithoutThinking(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestWithoutThinkingIsAnEnding(t *testing.T) {
	piece := rapid.SampledFrom([]string{"<think>", "</think>", "\n", "a", " ", "[THINK]", "[/THINK]", "<thinking>", "é"})
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOf(piece).Draw(t, "text"), "")
		got := WithoutThinking(in)
		if !strings.HasSuffix(strings.TrimSpace(in), got) || got != strings.TrimSpace(got) {
			t.Fatalf("%q became %q", in, got)
		}
	})
}

func TestTokens(t *testing.T) {
	for in, want := range map[string]Tokens{
		"12": 12, "12.0": 12, "1e3": 1000, "0": 0,
		"-1": 0, "null": 0, `"12"`: 0, "{}": 0, "[1]": 0, "1e300": 0, "true": 0,
	} {
		got := struct{ N Tokens }{99}
		if err := json.Unmarshal([]byte(`{"n":`+in+`}`), &got); err != nil || got.N != want && in != "null" {
			t.Errorf("%s: %d, %v", in, got.N, err)
		}
	}
}
