package fileview

import (
	"strings"
	"testing"
)

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
