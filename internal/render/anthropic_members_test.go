package render

import (
	"encoding/json"
	"reflect"
	"testing"
)

var cutCases = map[string]string{
	`{}`:                                    `{}`,
	`{"m":1}`:                               `{}`,
	`{"m":1,"m":[2],"a":3}`:                 `{"a":3}`,
	`{"a":3,"m":1,"m":"]"}`:                 `{"a":3}`,
	`{"a":1,"m":{"m":"}"},"b":2}`:           `{"a":1,"b":2}`,
	`{ "m" : true , "a" : "m" }`:            `{  "a" : "m" }`,
	`{"\u006d":null,"a":["m",{"m":-1e5}]}`:  `{"a":["m",{}]}`,
	`{"input":{"m":1,"a":[{"m":2}]},"m":3}`: `{"input":{"m":1,"a":[{"m":2}]}}`,
	`{"input":5,"a":{"m":1,"b":"\\"}}`:      `{"input":5,"a":{"b":"\\"}}`,
	`{"a\"":{"input":{"m":1}},"b":{"m":1}}`: `{"a\"":{"input":{"m":1}},"b":{}}`,
}

func TestCutMembers(t *testing.T) {
	for raw, want := range cutCases {
		if got := cutMembers(raw, "m", true); got != want {
			t.Errorf("%s became %s, not %s", raw, got, want)
		}
	}
	if got, want := cutMembers(`{"a":{"m":1},"m":2}`, "m", false), `{"a":{"m":1}}`; got != want {
		t.Errorf("not deep: %s, not %s", got, want)
	}
}

// FuzzCutMembers: what is cut is what encoding/json finds, and nothing else.
func FuzzCutMembers(f *testing.F) {
	for raw := range cutCases {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		var before, after any
		if json.Unmarshal([]byte(raw), &before) != nil {
			return
		}
		got := cutMembers(raw, "m", true)
		if err := json.Unmarshal([]byte(got), &after); err != nil {
			t.Fatalf("%s became %s: %v", raw, got, err)
		}
		if want := without(before, "m"); !doubled(raw) && !reflect.DeepEqual(after, want) {
			t.Fatalf("%s became %s", raw, got)
		}
	})
}

// without is a value without the members of a name, but for those of inputs.
func without(value any, name string) any {
	switch v := value.(type) {
	case map[string]any:
		delete(v, name)
		for key, member := range v {
			if _, object := member.(map[string]any); key != "input" || !object {
				v[key] = without(member, name)
			}
		}
	case []any:
		for i := range v {
			v[i] = without(v[i], name)
		}
	}
	return value
}
