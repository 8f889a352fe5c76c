package vscode

import (
	"io"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness/transcript"
)

func TestReplay(t *testing.T) {
	const whole = `{"kind":0,"v":{"a":{"b":1},"list":[1,2,3]}}`
	for _, tc := range []struct {
		change, want string
		warned       bool
	}{
		{`{"kind":0,"v":{"c":1}}`, `{"c":1}`, false},
		{`{"kind":1,"k":["a","b"],"v":{"x":[]}}`, `{"a":{"b":{"x":[]}},"list":[1,2,3]}`, false},
		{`{"kind":1,"k":["a","c"],"v":2}`, `{"a":{"b":1,"c":2},"list":[1,2,3]}`, false},
		{`{"kind":1,"k":["a","b"]}`, `{"a":{},"list":[1,2,3]}`, false},
		{`{"kind":1,"k":["list",1],"v":"x"}`, `{"a":{"b":1},"list":[1,"x",3]}`, false},
		{`{"kind":1,"k":["list",3],"v":4}`, `{"a":{"b":1},"list":[1,2,3,4]}`, false},
		{`{"kind":2,"k":["list"],"v":[4,5]}`, `{"a":{"b":1},"list":[1,2,3,4,5]}`, false},
		{`{"kind":2,"k":["list"],"v":[4],"i":1}`, `{"a":{"b":1},"list":[1,4]}`, false},
		{`{"kind":2,"k":["list"],"i":0}`, `{"a":{"b":1},"list":[]}`, false},
		{`{"kind":3,"k":["a","b"]}`, `{"a":{},"list":[1,2,3]}`, false},
		{`{"kind":3,"k":["a","z"]}`, `{"a":{"b":1},"list":[1,2,3]}`, false},
		{`{"kind":3,"k":["a"]}` + "\n" + `{"kind":1,"k":["a"],"v":7}`, `{"a":7,"list":[1,2,3]}`, false},
		{`{"kind":3,"k":["list",0]}`, `{"a":{"b":1},"list":[null,2,3]}`, false},
		{`{"kind":1,"k":["list",9],"v":4}`, `{"a":{"b":1},"list":[1,2,3]}`, true},
		{`{"kind":1,"k":["list","x"],"v":4}`, `{"a":{"b":1},"list":[1,2,3]}`, true},
		{`{"kind":1,"k":["z","x"],"v":4}`, `{"a":{"b":1},"list":[1,2,3]}`, true},
		{`{"kind":2,"k":["a"],"v":[1]}`, `{"a":{"b":1},"list":[1,2,3]}`, true},
		{`{"kind":2,"k":["list"],"v":7}`, `{"a":{"b":1},"list":[1,2,3]}`, true},
		{`{"kind":1,"k":[],"v":7}`, `{"a":{"b":1},"list":[1,2,3]}`, true},
		{`{"kind":9}`, `{"a":{"b":1},"list":[1,2,3]}`, true},
		{`7`, `{"a":{"b":1},"list":[1,2,3]}`, true},
		{`{"kind":1,"k":["a"`, `{"a":{"b":1},"list":[1,2,3]}`, true},
	} {
		warned := false
		var warn transcript.Warn = func(int, string, ...any) { warned = true }
		chat, err := replay(strings.NewReader(whole+"\n"+tc.change), warn)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(chat)
		if err != nil || string(got) != tc.want || warned != tc.warned {
			t.Errorf("%s gives %s, %v, %v", tc.change, got, warned, err)
		}
	}
}
