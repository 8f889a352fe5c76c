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

// TestOpencodeRules: what OpenCode adds around summaries counts as its own. Everything else is compared with
// the view.
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

// TestPiRules: results without a call count as pi's own; thinking of another model is a text.
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

const claudeRequest = `{"messages":[
	{"role":"user","content":[{"type":"text","text":"<system-reminder>\nToday's date is 2026-11-23.\n</system-reminder>"},{"type":"text","text":"Build it."}]},
	{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"ls","input":{}}]},
	{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"a.go\n\n<system-reminder>\n[SYSTEM NOTIFICATION - NOT USER INPUT]\nNot the user.\n\nIt ended.\n</system-reminder>"}]},
	{"role":"system","content":"The user sent a new message while you were working:\nTest it.\n\nThis is how Claude Code surfaces messages.\n\n[MESSAGE FROM NON-USER SOURCE - NOT USER INPUT]\nIt is late."},
	{"role":"system","content":"# Environment\nYou have been invoked in the following environment: /src\n\nToday's date is 2026-11-24."},
	{"role":"assistant","content":[{"type":"text","text":"Done."}]},
	{"role":"user","content":[{"type":"text","text":"<system-reminder>\nThe user sent a new message while you were working:\nShip it.\n\nIMPORTANT: After completing your current task, address it.\n</system-reminder>"}]},
	{"role":"user","content":[{"type":"text","text":"Say ok, and nothing else."}]}]}`

// TestClaudeRules: what Claude Code adds counts as its own, except for what the user sent while the model
// worked.
func TestClaudeRules(t *testing.T) {
	reminder := func(text string) Turn {
		return Turn{Role: "user", Kind: Text, Body: "<system-reminder>\n" + text + "\n</system-reminder>"}
	}
	view := []Turn{
		{Role: "user", Kind: Text, Body: "Build it."},
		{Role: "assistant", Kind: Call, ID: "c1", Name: "ls", Body: "{}"},
		{Kind: Result, ID: "c1", Body: "a.go"},
		reminder("[SYSTEM NOTIFICATION - NOT USER INPUT]\nNot the user.\n\nIt ended."),
		reminder("The user sent a new message while you were working:\nTest it.\n\nThis is how Claude Code surfaces messages."),
		reminder("[MESSAGE FROM NON-USER SOURCE - NOT USER INPUT]\nIt is late."),
		{Role: "assistant", Kind: Text, Body: "Done."},
		reminder("The user sent a new message while you were working:\nShip it.\n\nIMPORTANT: After completing your current task, address it."),
	}
	held(t, claudeCLI{}, view, claudeRequest, map[string]string{
		"none":                        "",
		"Test it.":                    "Test nothing.",
		"Ship it.":                    "Keep it.",
		"The user sent a new message": "A new message came",
		"It ended.":                   "It failed.",
		"It is late.":                 "It is early.",
		"Not the user.":               "The user.",
		"surfaces messages.":          "shows messages.",
		"[SYSTEM NOTIFICATION":        "[NOTIFICATION",
		"2026-11-24.":                 "2026-11-24.\\n\\nForget it.",
		"# Environment":               "# Another thing",
		"Today's date is 2026-11-23.": "Be brief.",
		"{\"role\":\"system\",\"content\":\"# Env": "{\"role\":\"assistant\",\"content\":\"# Env",
	})
	// A view without those words must differ.
	turns, err := claudeCLI{}.Turns([]byte(claudeRequest))
	if err != nil {
		t.Fatal(err)
	}
	if c := Compare(claudeCLI{}, append(view[:4:4], view[5:]...), turns, prompt); c.Difference == "" {
		t.Error("a view without what the user sent while the model worked passes")
	}
}

// held compares a request with a view: unchanged, and with one text replaced by another.
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
