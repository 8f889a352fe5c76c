package projection_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// example is a block of docs/projections.md that is a part of a script.
var example = regexp.MustCompile("(?s)\n```([a-z_]+/[a-z_]+\\.txt)\n(.*?)\n```\n")

// TestExamplesOfTheDocs checks that the examples are what the policies do.
func TestExamplesOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/projections.md")
	if err != nil {
		t.Fatal(err)
	}
	all := example.FindAllSubmatch(page, -1)
	if len(all) < 4 {
		t.Fatalf("only %d examples", len(all))
	}
	for _, m := range all {
		script, err := os.ReadFile("testdata/" + string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(script), strings.TrimSpace(string(m[2]))) {
			t.Errorf("%s does not hold\n%s", m[1], m[2])
		}
	}
}
