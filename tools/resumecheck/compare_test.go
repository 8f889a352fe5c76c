package main

import (
	"slices"
	"strings"
	"testing"
)

// said is a small session as Codex sends it.
func said(t *testing.T) []Turn {
	t.Helper()
	body := `{"input":[
		{"type":"message","role":"user","content":[{"type":"input_text","text":"So far: it builds."}]},
		{"type":"function_call","call_id":"c1","name":"ls","arguments":"{\"a\":1.0}"},
		{"type":"function_call","call_id":"c2","name":"cat","arguments":"{}"},
		{"type":"function_call_output","call_id":"c1","output":"a.go"},
		{"type":"function_call_output","call_id":"c2","output":"aborted"},
		{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}]}`
	turns, err := codexCLI{}.Turns([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return turns
}

var asked = Turn{Role: "user", Kind: Text, Body: prompt}

// TestCompareFindsFaults: each change of a request is a difference; turns that the CLI adds are none.
func TestCompareFindsFaults(t *testing.T) {
	view := said(t)
	view[4].Body, view[4].Interrupted, view[4].Failed = interrupted+"; …]", true, true
	own := []Turn{
		{Role: "system", Kind: Text, Body: "<tools>"},
		{Role: "user", Kind: Text, Body: "<environment_context>here</environment_context>"},
	}
	change := func(i int, f func(*Turn)) func([]Turn) []Turn {
		return func(turns []Turn) []Turn { f(&turns[i]); return turns }
	}
	same := func(turns []Turn) []Turn { return turns }
	for name, tc := range map[string]struct {
		fault func([]Turn) []Turn
		want  string // expected in the difference
	}{
		"none":              {same, ""},
		"own turns":         {func(turns []Turn) []Turn { return slices.Insert(turns, 5, own...) }, ""},
		"a call dropped":    {func(turns []Turn) []Turn { return slices.Delete(turns, 1, 2) }, "turn 2 of 7 should be"},
		"a summary changed": {change(0, func(t *Turn) { t.Body = "So far: it fails." }), "turn 1 of 7"},
		"an argument":       {change(1, func(t *Turn) { t.Body = `{"a":1}` }), "turn 2 of 7"},
		"a call's id":       {change(1, func(t *Turn) { t.ID = "c3" }), "turn 2 of 7"},
		"a tool's name":     {change(2, func(t *Turn) { t.Name = "rm" }), "turn 4 of 7"},
		"a result":          {change(3, func(t *Turn) { t.Body = "b.go" }), "turn 3 of 7"},
		"a result's error":  {change(3, func(t *Turn) { t.Failed = true }), "turn 3 of 7"},
		"an open call":      {change(4, func(t *Turn) { t.Body = "c.go" }), "turn 5 of 7"},
		"a role":            {change(5, func(t *Turn) { t.Role = "user" }), "turn 6 of 7"},
		"the order":         {func(turns []Turn) []Turn { turns[1], turns[2] = turns[2], turns[1]; return turns }, "turn 2 of 7"},
		"parallel results":  {func(turns []Turn) []Turn { turns[3], turns[4] = turns[4], turns[3]; return turns }, ""},
		"a result after the text": {func(turns []Turn) []Turn {
			turns = append(turns, turns[3])
			return slices.Insert(slices.Delete(turns, 3, 4), 3, Turn{Role: "user", Kind: Text, Body: "?"})
		}, "turn 3 of 7"},
		"a text too many":  {func(turns []Turn) []Turn { return slices.Insert(turns, 5, turns[0]) }, "turn 6 of 7"},
		"the last dropped": {func(turns []Turn) []Turn { return slices.Delete(turns, 5, 6) }, "turn 6 of 7"},
	} {
		got := Compare(codexCLI{}, view, append(tc.fault(said(t)), asked), prompt)
		if (got.Difference == "") != (tc.want == "") || !strings.Contains(got.Difference, tc.want) {
			t.Errorf("%s: the difference is %q", name, got.Difference)
		}
	}
	if got := Compare(codexCLI{}, view, said(t), prompt); !strings.Contains(got.Difference, "turn 7 of 7 is not in the request") {
		t.Errorf("without the prompt: %q", got.Difference)
	}
	if got := Compare(codexCLI{}, view, append(said(t), asked, asked), prompt); !strings.Contains(got.Difference, "after the prompt") {
		t.Errorf("with two prompts: %q", got.Difference)
	}
}
