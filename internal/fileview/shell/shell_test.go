package shell

import (
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/fileview/fileop"
	"github.com/contextd/contextd/internal/fileview/program"
)

// TestLongPrograms: a program may be a long word of a command.
func TestLongPrograms(t *testing.T) {
	program := "open('a.go', 'w').write(text)" + strings.Repeat("\n# a comment", longestScript)
	for _, script := range []string{`python3 -c "` + program[:2*longestScript] + `"`, "python3 <<'x'\n" + program[:2*longestScript] + "\nx"} {
		if got := Commands("bash", script, ""); len(got) != 1 || got[0].Kind != fileop.Change || got[0].Path != "a.go" {
			t.Errorf("%.20q: %v", script, got)
		}
	}
}

// TestScriptsThatNest: a parser that calls itself for each bracket or word has an end.
func TestScriptsThatNest(t *testing.T) {
	for _, part := range []string{"(", "{ ", "$(", "$((", "a[", "if ", "! ", "time ", "a() ", "a && ", "a | ", "a; "} {
		for _, bytes := range []int{program.MostBytes - 100, 1 << 20} {
			script := "wc <<x\n\nx\n" + strings.Repeat(part, bytes/len(part))
			if got := Commands("bash", script, ""); len(got) > 0 {
				t.Errorf("%q: %v", part, got)
			}
		}
	}
}
