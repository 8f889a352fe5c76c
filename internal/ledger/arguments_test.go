package ledger

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// Whatever the model wrote, readArguments finds the same commands and files as a map of all arguments.
func TestArgumentsAreThoseOfTheMap(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"{", "}", "[", "]", ",", ":", " ", "\n", `"`, `\`, `"path"`, `"file_path":"a"`, `"command":"ls"`, `"cmd":["sh","-c","ls"]`, `"p\u0061th":"b"`,
		`"x":{"path":"no"}`, `"script":null`, `"y":1`, `"z":"}\"{"`, "null", "true", "\xff", `""`, `"File":[{}]`, "é",
	})
	inside := rapid.SliceOfN(rapid.SampledFrom([]string{
		`"path":"a"`, `"file_path" : "b"`, `"command":"ls \"x\""`, "\n\"cmd\":[\"sh\",\"-c\",\"ls\"]", `"p\u0061th":"b"`, `"x":{"path":["no",{}]} `, `"script":null`,
		`"y":-1e3`, `"z":"}\\"`, `"\ud800file":""`, `"TargetFile":true`, `"":[]`, "\"\xfffile\":\"\xff\"",
	}), 0, 6)
	rapid.Check(t, func(t *rapid.T) {
		written := ""
		if rapid.Bool().Draw(t, "object") {
			written = "{"
			for i, member := range inside.Draw(t, "members") {
				if i > 0 {
					written += ","
				}
				written += member
			}
			written += "} "
		} else {
			for _, s := range rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces") {
				written += s
			}
		}
		var all map[string]json.RawMessage
		err := json.Unmarshal([]byte(written), &all)
		want := arguments{}
		for name, value := range all {
			if namesCommand(name) || namesFile(name) {
				want[name] = value
			}
		}
		got, ok := readArguments(written)
		if ok != (err == nil) || ok && len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %q %v, not %q %v", written, got, ok, want, err)
		}
	})
}
