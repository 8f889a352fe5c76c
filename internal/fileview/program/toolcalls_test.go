package program

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestLiteralsOfPrograms: however a text is written as a literal, it is read as it was.
func TestLiteralsOfPrograms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab \n\t\\\"'`${}/é\u2028😀"))).Draw(t, "text")
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		single := "'" + strings.ReplaceAll(strings.ReplaceAll(string(quoted[1:len(quoted)-1]), `\"`, `"`), `'`, `\'`) + "'"
		template := "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`", "$", "\\$").Replace(text) + "`"
		half := rapid.IntRange(0, len([]rune(text))).Draw(t, "half")
		first, _ := json.Marshal(string([]rune(text)[:half]))
		second, _ := json.Marshal(string([]rune(text)[half:]))
		for _, literal := range []string{string(quoted), single, template, string(first) + " + " + string(second), "[" + string(first) + ", " + string(second) + "].join('')"} {
			p := newJSProgram(literal)
			if got, ok := p.sum(0); !ok || got.text != text || p.at != len(p.tokens) {
				t.Fatalf("%s is %q, %t", literal, got.text, ok)
			}
		}
	})
}

// TestProgramsThatGrow: what a program would build is not built.
func TestProgramsThatGrow(t *testing.T) {
	for _, text := range []string{
		`a = "12345678"; ` + strings.Repeat("a = a + a; ", 60) + `tools.apply_patch(a)`,
		`a = "12345678"; ` + strings.Repeat("a += a; ", 60) + `tools.apply_patch(a)`,
		`a = "aaaaaaaa"; ` + strings.Repeat(`a = a.replaceAll("a", "aaaaaaaa"); `, 60) + `tools.apply_patch(a)`,
		strings.Repeat("(", 1<<16) + strings.Repeat("[", 1<<16) + strings.Repeat("x=(", 1<<16),
		strings.Repeat("{tools.a({b:", 1<<14),
	} {
		p := newJSProgram(text)
		for p.at < len(p.tokens) {
			p.step()
		}
		if p.built > 2*mostBuilt {
			t.Errorf("%.40q builds %d bytes", text, p.built)
		}
	}
}
