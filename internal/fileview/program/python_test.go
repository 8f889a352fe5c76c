package program

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestPythonTexts: a text is read as it is, however a program writes it.
func TestPythonTexts(t *testing.T) {
	escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`, `'`, `\'`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab \n\t\\\"'{}#xnu0é…;("))).Draw(t, "text")
		half := rapid.IntRange(0, len([]rune(text))).Draw(t, "half")
		quoted := func(text string) string {
			out, _ := json.Marshal(text)
			return string(out)
		}
		first, second := quoted(string([]rune(text)[:half])), quoted(string([]rune(text)[half:]))
		forms := []string{quoted(text), `"""` + escaped.Replace(text) + `"""`, `'''` + escaped.Replace(text) + `'''`, "(" + first + "\n  # a comment's\n  " + second + ")", first + ` + b` + second}
		if !strings.ContainsAny(text, "\\\"'\n") {
			forms = append(forms, `r'`+text+`'`)
		}
		for _, form := range forms {
			p := pyProgram{cursor: cursor{tokens: scanPython(form)[1:]}}
			if v, ok := p.sum(0); !ok || v.kind != pyText || v.text != text || p.at != len(p.tokens) {
				t.Fatalf("%s is %q, %t", form, v.text, ok)
			}
		}
	})
}

// TestPythonEscapes: what only Python makes of a backslash.
func TestPythonEscapes(t *testing.T) {
	for form, want := range map[string]string{
		`'\d\.\w'`: `\d\.\w`, `'\x41\u00e9'`: "Aé", "'a\\\nb'": "ab", `'\0'`: "\x00", `rb'\d'`: `\d`, `f'a'`: "a",
		`'\N{DASH}'`: "", `'\101'`: "", `f'{a}'`: "", `'a`: "", `'''a`: "",
	} {
		p := pyProgram{cursor: cursor{tokens: scanPython(form)[1:]}}
		if v, ok := p.sum(0); v.text != want || ok != (want != "") {
			t.Errorf("%s is %q, %t", form, v.text, ok)
		}
	}
}
