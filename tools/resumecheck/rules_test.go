package main

import (
	"strings"
	"testing"
)

const opencodeRequest = `{"messages":[
	{"role":"user","content":[{"type":"text","text":"What did we do so far?"}]},
	{"role":"assistant","content":[{"type":"thinking","thinking":"Hm","signature":"s"},{"type":"text","text":"It builds."},{"type":"text","text":"Kept."}]},
	{"role":"user","content":[{"type":"text","text":"What did we do so far?"}]},
	{"role":"assistant","content":[{"type":"text","text":"An older summary."},{"type":"tool_use","id":"c1","name":"ls","input":{"n":1}}]},
	{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"[Tool execution was interrupted]","is_error":true},{"type":"text","text":"Say ok, and nothing else."}]}]}`

// TestOpencodeRules: what OpenCode says around summaries is its own, and everything else is
// held to the view.
func TestOpencodeRules(t *testing.T) {
	view := []Turn{
		{Role: "system", Kind: Text, Body: "You code."},
		{Role: "user", Kind: Text, Body: "It builds."},
		{Role: "assistant", Kind: Text, Body: "Kept."},
		{Role: "assistant", Kind: Call, ID: "c1", Name: "ls", Body: `{"n":1.0}`},
		{Kind: Result, ID: "c1", Body: interrupted, Failed: true, Interrupted: true},
	}
	held(t, opencodeCLI{&opencodeModel{Provider: "anthropic", ID: "m", own: true}, nil}, view, opencodeRequest, map[string]string{
		"none":                           "",
		"It builds.":                     "It fails.",
		`"Kept."`:                        `"Lost."`,
		`{"n":1}`:                        `{"n":2}`,
		`"c1","name"`:                    `"c2","name"`,
		`"ls"`:                           `"rm"`,
		"interrupted]":                   "done]",
		`"is_error":true`:                `"is_error":false`,
		`{"type":"text","text":"Kept."}`: `{"type":"text","text":"Kept."},{"type":"text","text":"And more."}`,
	})
}

const piRequest = `{"messages":[
	{"role":"user","content":[{"type":"text","text":"The summary is: It builds."}]},
	{"role":"user","content":[{"type":"tool_result","tool_use_id":"gone","content":"x"}]},
	{"role":"assistant","content":[{"type":"text","text":"Hm"},{"type":"tool_use","id":"call_1","name":"ls","input":{}}]},
	{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":[{"type":"text","text":"(see attached image)"},
		{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAEC"}}]}]},
	{"role":"user","content":[{"type":"text","text":"Say ok, and nothing else."}]}]}`

// TestPiRules: results without a call are pi's own, thinking of another model is a text.
func TestPiRules(t *testing.T) {
	view := []Turn{
		{Role: "user", Kind: Text, Body: "The summary is: It builds."},
		{Role: "assistant", Kind: Thinking, Body: "Hm", Signature: "s"},
		{Role: "assistant", Kind: Thinking, Secret: "sealed"},
		{Role: "assistant", Kind: Call, ID: "call.1", Name: "ls", Body: `{}`},
		{Kind: Result, ID: "call.1", Body: "data:image/png;base64,AAEC"},
		{Role: "user", Kind: Text, Body: " "},
	}
	held(t, piCLI{&piModel{Provider: "fake", API: piMessages, ID: "fake"}}, view, piRequest, map[string]string{
		"none":                             "",
		"It builds.":                       "It fails.",
		`{"type":"text","text":"Hm"},`:     "",
		`"id":"call_1","name"`:             `"id":"call_2","name"`,
		`"input":{}`:                       `"input":{"a":1}`,
		"AAEC":                             "AAED",
		`{"type":"tool_use","id":"call_1"`: `{"type":"text","text":"?"},{"type":"tool_use","id":"call_1"`,
	})
}

// held compares a request with a view, as it is and with one text replaced by another.
func held(t *testing.T, h Harness, view []Turn, request string, faults map[string]string) {
	t.Helper()
	for from, to := range faults {
		body := request
		if from != "none" {
			if !strings.Contains(body, from) {
				t.Errorf("%q is not in the request", from)
			}
			body = strings.Replace(body, from, to, 1)
		}
		turns, err := h.Turns([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if c := Compare(h, view, turns, prompt); (c.Difference == "") != (from == "none") {
			t.Errorf("with %q for %q the difference is %q", to, from, c.Difference)
		}
	}
}
