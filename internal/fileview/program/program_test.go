package program

import (
	"strings"
	"testing"
)

// TestProgramsThatNest: whatever a program is, it is read once.
func TestProgramsThatNest(t *testing.T) {
	for _, part := range []string{"(", "a(", "open(", "s.replace(", "if a:\n ", "a=", "'a'+", "a=a+a\n", "with open('a') as a:\n", "Path(", "f(a=", ";", "]", "\\\n", `"""`, "f'{"} {
		script := "s = open('a').read()\na = 'text'\n" + strings.Repeat(part, 2*MostBytes/len(part))
		if got := Python(script); len(got) > 0 {
			t.Errorf("%q: %v", part, got)
		}
		JavaScript(script)
	}
}
