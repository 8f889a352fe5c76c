package render_test

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/render"
)

// argumentsIn are the arguments of the one call in what an assistant said.
func argumentsIn(t testing.TB, f *render.Format, arguments string) string {
	json := string(f.Fragments(by("", run("c", arguments)))[0].JSON)
	head, tail := `{"type":"tool_use","id":"c","name":"bash","input":`, `}`
	if f.Name == "gemini" {
		head, tail = `{"functionCall":{"id":"c","name":"bash","args":`, `},"thoughtSignature":"skip_thought_signature_validator"}`
	}
	json, begins := strings.CutPrefix(json, head)
	json, ends := strings.CutSuffix(json, tail)
	if !begins || !ends {
		t.Fatalf("%s: no call: %s", f.Name, json)
	}
	return json
}

// readAlike reports whether two JSON texts say the same to encoding/json, which reads half of
// a surrogate pair as U+FFFD.
func readAlike(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// readable reports whether a provider reads valid JSON, by its tokens.
func readable(format, arguments string) bool {
	deepest := map[string]int{"anthropic": 190, "gemini": 30}[format]
	type level struct {
		names map[string]bool
		value bool // the next string is a value
	}
	var open []level
	d := json.NewDecoder(strings.NewReader(arguments))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return err == io.EOF
		}
		last := len(open) - 1
		if name, ok := token.(string); ok && last >= 0 && open[last].names != nil && !open[last].value {
			if format == "gemini" && open[last].names[name] {
				return false
			}
			open[last].names[name], open[last].value = true, true
			continue
		}
		if last >= 0 {
			open[last].value = false
		}
		switch v := token.(type) {
		case json.Delim:
			switch v {
			case '{':
				open = append(open, level{names: map[string]bool{}})
			case '[':
				open = append(open, level{})
			default:
				open = open[:last]
			}
			if len(open) > deepest {
				return false
			}
		case json.Number:
			if _, err := v.Float64(); err != nil {
				return false
			}
		}
	}
}

// FuzzProviderArguments: arguments are found byte for byte, but for whitespace between
// tokens and halves of surrogate pairs, or as the text they were. encoding/json's Compact is
// the oracle.
func FuzzProviderArguments(f *testing.F) {
	for _, s := range append(someJSON, `{"a":1.0,"b":-0,"c":1E+2}`, `{"n":9223372036854775808}`, `{"a":1,"a":2}`, `{"s":"\ud800 \udc00\/é"}`, `{"d":`+strings.Repeat("[", 500)+strings.Repeat("]", 500)+`}`, "{\n\t\"a b\" : \" x \" }", `1e400`) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, arguments string) {
		var compact bytes.Buffer
		valid := json.Compact(&compact, []byte(arguments)) == nil && utf8.ValidString(arguments)
		for _, format := range providerFormats() {
			got := argumentsIn(t, format, arguments)
			if !json.Valid([]byte(got)) || !utf8.ValidString(got) {
				t.Fatalf("%s: no JSON: %s", format.Name, got)
			}
			var text struct {
				Text *string `json:"raw_arguments"`
			}
			_ = json.Unmarshal([]byte(got), &text)
			switch {
			case arguments == "":
				if got != `{}` {
					t.Errorf("%s: nothing became %s", format.Name, got)
				}
			case valid && compact.Bytes()[0] == '{' && got == compact.String():
			case valid && compact.Bytes()[0] == '{' && strings.Contains(got, `\ufffd`) && len(got) == compact.Len() && readAlike(got, compact.String()):
			case valid && compact.Bytes()[0] == '{' && readable(format.Name, arguments):
				t.Errorf("%s: %q became %s", format.Name, arguments, got)
			case text.Text == nil || *text.Text != string([]rune(arguments)):
				t.Errorf("%s: %q became %s", format.Name, arguments, got)
			}
		}
	})
}
