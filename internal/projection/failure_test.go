package projection

import (
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/reduce"
)

func TestFailed(t *testing.T) {
	for body, want := range map[string]bool{
		// A status of its own.
		`{"status":"error"}`:                      true,
		` {"code":1, "status" : "FAILED"} `:       true,
		`{"status":"rejected","items":[]}`:        true,
		`{"status":"exception"}`:                  true,
		`{"status":"denied"}`:                     true,
		`{"status":"ok"}`:                         false,
		`{"status":"errors"}`:                     false,
		`{"status":{"error":1}}`:                  false,
		`{"status":500}`:                          false,
		`{"Status":"error"}`:                      false,
		`{"result":{"status":"error"}}`:           false,
		`[{"status":"error"}]`:                    false,
		`{"status":"error"}` + "\n" + `{"a":1}`:   false,
		`{"status":"error"`:                       false,
		`{"is_error":true,"message":"Error: no"}`: false,
		// What it begins with.
		"error: no":                         true,
		"  ERROR: no":                       true,
		"Failed: no":                        true,
		"tool error":                        true,
		"Tool error (5): no":                true,
		"tool errors: none":                 false,
		"errors: none":                      false,
		"failed to open":                    false,
		"build failed: no":                  false,
		"12:00 error: no":                   false,
		`the log says {"is_error":true}`:    false,
		"":                                  false,
		"e":                                 false,
		"ſailed: folds to no other letters": false,
	} {
		if got := Failed(&reduce.Call{Body: body}); got != want {
			t.Errorf("%s: %v", body, got)
		}
		if !Failed(&reduce.Call{Body: body, IsError: true}) || Failed(&reduce.Call{Body: body, IsError: true, Interrupted: true}) {
			t.Errorf("%s: the mark does not decide", body)
		}
	}
}

func TestSubject(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"path":"a"}`, `{"path":"a"}`, true},
		{`{"path":"a"}`, `{"path":"b"}`, false},
		{`{"path":"a","limit":1}`, `{"limit":2, "path":"a"}`, true},
		{`{"file_path":"a","old":"x"}`, `{"file_path":"a","old":"y"}`, true},
		{`{"issueId":1}`, `{"issueId":1,"body":"x"}`, true},
		{`{"issueId":1}`, `{"issueId":12}`, false},
		{`{"path":"a","pattern":"x"}`, `{"path":"a","pattern":"y"}`, false},
		{`{"path":"a","pattern":"x"}`, `{"path":"a"}`, false},
		{`{"command":["make","a"]}`, `{"command": [ "make", "a" ]}`, true},
		{`{"command":["make","a"]}`, `{"command":["make","b"]}`, false},
		{`{"cmd":"make","timeout":1}`, `{"cmd":"make","timeout":2}`, true},
		{`{"path":"a"}`, `{"file":"a"}`, false},
		// Without a target.
		{`{"level":1}`, `{"level":1}`, true},
		{`{"level":1}`, `{"level":2}`, false},
		{`{}`, ` { } `, true},
		{``, `{}`, false},
		{`patch a`, `patch a `, true},
		{`patch a`, `patch b`, false},
		// Cut off.
		{`{"path":"a","content":"x`, `{"path":"a","content":"xy"}`, true},
		{`{"path":"a`, `{"path":"a"}`, false},
	} {
		a, b := reduce.Call{Name: "t", Arguments: c.a}, reduce.Call{Name: "t", Arguments: c.b}
		if (subject(&a) == subject(&b)) != c.same || (subject(&b) == subject(&a)) != c.same {
			t.Errorf("%s and %s: want same %v", c.a, c.b, c.same)
		}
		if b.Name = "u"; subject(&a) == subject(&b) {
			t.Errorf("%s of two tools is the same", c.a)
		}
	}
}

func FuzzSubject(f *testing.F) {
	for _, s := range []string{`{"path":"a"}`, `{"a":[1,{"b":"c"}],"cmd":null}`, `{"path":"a","path":"b"}`, `{"path`, "x", "", `{"\u0000path":1}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, arguments string) {
		c := reduce.Call{Name: "t", Arguments: arguments, Body: arguments}
		again := reduce.Call{Name: "t", Arguments: " " + arguments + "\n"}
		if subject(&c) != subject(&again) {
			t.Errorf("space around %q makes another subject", arguments)
		}
		spaced := reduce.Call{Body: "\n" + arguments + " "}
		if Failed(&c) != Failed(&spaced) {
			t.Errorf("space around %q makes another outcome", arguments)
		}
		if !strings.HasPrefix(subject(&c), "t\x00") {
			t.Errorf("%q is of no tool", subject(&c))
		}
	})
}
