package config_test

import (
	"strings"
	"testing"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestMisfit: a value that does not fit a policy is named by its path, with what belongs there. An unknown
// field gets the most similar field of its message, or those that there are.
func TestMisfit(t *testing.T) {
	for text, want := range map[string]string{
		`{tool_result: {}}`:                                      `unknown field "tool_result" (did you mean "tool_results"?)`,
		`{tool_results: {default: {turn: 3}}}`:                   `tool_results.default: unknown field "turn" (did you mean "turns"?)`,
		`{toolResults: {by_tool: {bash: {min_tokns: 3}}}}`:       `toolResults.by_tool["bash"]: unknown field "min_tokns" (did you mean "min_tokens"?)`,
		`{tool_results: {by_tool: {turn: {last: 1, turnz: 1}}}}`: `tool_results.by_tool["turn"]: unknown field "turnz" (did you mean "turns"?)`,
		`{soup: 1}`:                                      `unknown field "soup"; it may have the fields name, tool_results, duplicates, clipping, thinking, window, summarization and others`,
		`{clipping: {zzzzzzz: 1}}`:                       `clipping: unknown field "zzzzzzz"; it may have the fields max_tokens, head_tokens and tail_tokens`,
		`{clipping: 5}`:                                  `clipping: must be a map with the fields max_tokens, head_tokens and tail_tokens; it is 5`,
		`{clipping: [5]}`:                                `clipping: must be a map with the fields max_tokens, head_tokens and tail_tokens; it is a list`,
		`{window: {max_turns: many}}`:                    `window.max_turns: must be a whole number, and not less than 0; it is "many"`,
		`{window: {max_turns: -1}}`:                      `window.max_turns: must be a whole number, and not less than 0; it is -1`,
		`{window: {strict_anchor: 1}}`:                   `window.strict_anchor: must be true or false; it is 1`,
		`{recall_tool: [a]}`:                             `recall_tool: must be a text; it is a list`,
		`{cache: {cache_ttl: 5 minutes}}`:                `cache.cache_ttl: must be a number of seconds and s, such as "30s"; it is "5 minutes"`,
		`{summarization: {start_at: high}}`:              `summarization.start_at: must be a number; it is "high"`,
		`{projection: {roots: x}}`:                       `projection.roots: must be a list; it is "x"`,
		`{projection: {roots: [x, 3]}}`:                  `projection.roots[1]: must be a text; it is 3`,
		`{tool_results: {by_tool: [bash]}}`:              `tool_results.by_tool: must be a map; it is a list`,
		`{tool_results: {default: {turns: 2, last: 3}}}`: `tool_results.default: last and turns cannot be set together`,
		`{tool_results: {by_tool: {1: {turns: 2}}}}`:     `keys of maps must be texts`,
		`{"projection": {"roots": ["x", "a\ud800 b"]}}`:  `projection.roots.1: half of a surrogate pair is no text`,
		`{"summarization": {"instructions": "\udc00"}}`:  `summarization.instructions: half of a surrogate pair is no text`,
		`{"projection": {"scrub": 3, "reason": "😀"}}`:    `projection.scrub: must be true or false; it is 3`,
		`{"name": "a", "name": "b"}`:                     `duplicate field "name"`,
		`["a"]`:                                          `line 1: must be a map, not a list`,
		`{window: ` + strings.Repeat("a", 99) + `}`:      `window: must be a map with the fields max_turns, max_tokens and strict_anchor; it is "` + strings.Repeat("a", 39) + "…",
	} {
		if err := config.ParseMessage(text, &contextdv1.Policy{}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestParseMessage: a message is YAML or JSON; what only JSON can express is read, too.
func TestParseMessage(t *testing.T) {
	for _, text := range []string{
		`{projection: {reason: "a 😀"}}`,
		"projection:\n  reason: a 😀",
		`{"projection": {"reason": "a \ud83d\ude00"}}`,
	} {
		p := &contextdv1.Policy{}
		if err := config.ParseMessage(text, p); err != nil || p.GetProjection().GetReason() != "a 😀" {
			t.Errorf("%s: %v, %v", text, p, err)
		}
	}
}
