package fileview

import (
	"strings"
	"testing"
)

// TestLongPrograms: a program may be a long word of a command.
func TestLongPrograms(t *testing.T) {
	program := "open('a.go', 'w').write(text)" + strings.Repeat("\n# a comment", longestScript)
	for _, script := range []string{`python3 -c "` + program[:2*longestScript] + `"`, "python3 <<'x'\n" + program[:2*longestScript] + "\nx"} {
		if got := commands("bash", script); len(got) != 1 || got[0].Kind != Change || got[0].Path != "a.go" {
			t.Errorf("%.20q: %v", script, got)
		}
	}
}

// TestProgramsThatNest: whatever a program is, it is read once.
func TestProgramsThatNest(t *testing.T) {
	for _, part := range []string{"(", "a(", "open(", "s.replace(", "if a:\n ", "a=", "'a'+", "a=a+a\n", "with open('a') as a:\n", "Path(", "f(a=", ";", "]", "\\\n", `"""`, "f'{"} {
		script := "s = open('a').read()\na = 'text'\n" + strings.Repeat(part, 2*mostScript/len(part))
		if got := python(script); len(got) > 0 {
			t.Errorf("%q: %v", part, got)
		}
		javaScript(script)
	}
}

// TestScriptsThatNest: a parser that calls itself for each bracket or word has an end.
func TestScriptsThatNest(t *testing.T) {
	for _, part := range []string{"(", "{ ", "$(", "$((", "a[", "if ", "! ", "time ", "a() ", "a && ", "a | ", "a; "} {
		for _, bytes := range []int{mostScript - 100, 1 << 20} {
			script := "wc <<x\n\nx\n" + strings.Repeat(part, bytes/len(part))
			if got := commands("bash", script); len(got) > 0 {
				t.Errorf("%q: %v", part, got)
			}
		}
	}
}
