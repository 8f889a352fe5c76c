package expression_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/contextd/contextd/internal/projection/expression"
)

// TestDocumentedExpressions compiles the examples of docs/projections.md.
func TestDocumentedExpressions(t *testing.T) {
	page, err := os.ReadFile("../../../docs/projections.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```cel\n(.*?)```").FindAllSubmatch(page, -1)
	if len(examples) < 3 {
		t.Fatalf("only %d examples", len(examples))
	}
	for _, e := range examples {
		p, err := expression.Compile(string(e[1]))
		if err != nil {
			t.Errorf("%s: %v", e[1], err)
			continue
		}
		if got, err := p.Evaluate(expression.NewFacts(aGroup), standing); err != nil || got != expression.Keep {
			t.Errorf("a young group of another kind: %v, %v by %s", got, err, e[1])
		}
	}
}
