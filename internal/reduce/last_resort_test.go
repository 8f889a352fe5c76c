package reduce

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocsNameTheLastResort checks that docs/policies.md lists its steps, by name and in order.
func TestDocsNameTheLastResort(t *testing.T) {
	page, err := os.ReadFile("../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "the last resort follows, step")
	list, _, _ = strings.Cut(list, "What still does not fit")
	named := regexp.MustCompile(`(?m)^(\d+)\. \*\*([^*]+?)[.,:]?\*\*`).FindAllStringSubmatch(list, -1)
	steps := (&reduction{}).resorts()
	if len(named) != len(steps) {
		t.Fatalf("%d steps in the docs, %d in the code", len(named), len(steps))
	}
	for i, step := range steps {
		if named[i][1] != fmt.Sprint(i+1) || !strings.EqualFold(named[i][2], step.name) {
			t.Errorf("step %d is %q in the docs and %q in the code", i+1, named[i][0], step.name)
		}
	}
}
