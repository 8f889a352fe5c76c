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

// TestValues: the names of members are the tool's; what they hold is not.
func TestValues(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain",
		`{"file_path":"a.go","edits":[{"old_string":"x"}],"yield_time_ms":1000}`: "x\na.go\n1000",
	} {
		if got := Values(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
