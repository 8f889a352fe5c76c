package ledger

import "testing"

func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		"":                "",
		"plain":           "plain",
		"{not JSON}":      "{not JSON}",
		`{"a":1} {"b":2}`: `{"a":1} {"b":2}`,
		`{"b":"\tcanOpen","a":["x\ny",12.50,true,null,{"c":"d"}]}`: "a\nx\ny\n12.50\nc\nd\nb\n\tcanOpen",
		` ["one"] `: "one",
		`"quoted"`:  `"quoted"`,
	} {
		if got := Decode(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
