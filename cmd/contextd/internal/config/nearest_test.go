package config_test

import (
	"testing"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// A field that there is not gets the nearest of those of the message that it is in.
func TestNearField(t *testing.T) {
	for text, want := range map[string]string{
		`{tool_result: {}}`:                                      `unknown field "tool_result" (did you mean "tool_results"?)`,
		`{tool_results: {default: {turn: 3}}}`:                   `tool_results: unknown field "turn" (did you mean "turns"?)`,
		`{toolResults: {by_tool: {bash: {min_tokns: 3}}}}`:       `toolResults: unknown field "min_tokns" (did you mean "min_tokens"?)`,
		`{tool_results: {by_tool: {turn: {last: 1, turnz: 1}}}}`: `tool_results: unknown field "turnz" (did you mean "turns"?)`,
		`{soup: 1}`:                `unknown field "soup"`,
		`{clipping: {zzzzzzz: 1}}`: `clipping: unknown field "zzzzzzz"`,
	} {
		if err := config.ParseMessage(text, &contextdv1.Policy{}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
