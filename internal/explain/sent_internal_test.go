package explain

import (
	"slices"
	"strings"
	"testing"
)

func TestReadable(t *testing.T) {
	for _, c := range []struct {
		name, json string
		texts      []string
	}{
		{"strings", `{"role":"user","content":[{"type":"text","text":"said"},"more"]}`, []string{"said", "more"}},
		{"what is opaque", `{"signature":"x","source":{"data":"AAAA"},"image_url":"data:image/png;base64,AAAA","n":1,"b":true,"z":null}`, nil},
		{"arguments", `{"input":{"path":"a.go","n":1.0}}`, []string{`{"path":"a.go","n":1.0}`, "path", "a.go", "n"}},
		{"arguments in a string", `{"arguments":"{\"path\":\"a.go\"}"}`, []string{`{"path":"a.go"}`, "path", "a.go"}},
		{"a member twice", `{"text":"one","text":"two"}`, []string{"one", "two"}},
		{"what is cut off", `{"text":"one","more":[`, []string{"one"}},
	} {
		if got := readable([]byte(c.json)); !slices.Equal(got, c.texts) {
			t.Errorf("%s: got %q", c.name, got)
		}
	}
}

// Each text in deeply nested JSON is read once, not once for each array around it.
func TestReadableIsDeep(t *testing.T) {
	const depth = 9_000
	text := strings.Repeat("x", 1<<20)
	got := readable([]byte(strings.Repeat("[", depth) + `"` + text + `"` + strings.Repeat("]", depth)))
	if !slices.Equal(got, []string{text}) {
		t.Errorf("got %d texts", len(got))
	}
}
