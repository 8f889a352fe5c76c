package harness_test

import (
	"os"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness/claude"
	"github.com/contextd/contextd/internal/harness/codex"
	"github.com/contextd/contextd/internal/harness/cursor"
	"github.com/contextd/contextd/internal/harness/gemini"
	"github.com/contextd/contextd/internal/harness/opencode"
	"github.com/contextd/contextd/internal/harness/pi"
	"github.com/contextd/contextd/internal/harness/transcript"
)

// TestNotKeptPages: the pages print the tables of what is not kept, row by row, and
// nothing else under that heading.
func TestNotKeptPages(t *testing.T) {
	for name, table := range map[string][]transcript.NotKept{
		claude.Name: claude.NotKept, codex.Name: codex.NotKept, pi.Name: pi.NotKept, opencode.Name: opencode.NotKept, gemini.Name: gemini.NotKept, cursor.Name: cursor.NotKept,
	} {
		page, err := os.ReadFile("../../docs/harness/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		want := "| entry | field | why |\n| --- | --- | --- |\n"
		for _, row := range table {
			field := "`" + row.Field + "`"
			if row.Field == "" {
				field = "the whole"
			}
			want += "| `" + row.Entry + "` | " + field + " | " + row.Reason + " |\n"
		}
		_, got, _ := strings.Cut(string(page), "## Not kept\n\n")
		if got != want {
			t.Errorf("the page of %s should end with\n%s\nand ends with\n%s", name, want, got)
		}
	}
}
