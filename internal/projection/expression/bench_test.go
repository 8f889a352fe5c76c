package expression_test

import (
	"testing"

	"github.com/contextd/contextd/internal/projection/expression"
)

// BenchmarkEvaluate gives the time of one group.
func BenchmarkEvaluate(b *testing.B) {
	f := expression.NewFacts(expression.Fixed{
		Roles: []string{"assistant", "tool"}, Tools: []string{"read_file", "mcp__search"}, TextChars: 9000, ResultChars: 8000, Results: 2,
		Labels: map[string]string{"stage": "plan", "agent": "a"},
	})
	for name, source := range map[string]string{
		"bool":    `age < 20 || errors > 0`,
		"verdict": `errors == 0 && age > 12 && tokens > 400 ? (age > 60 ? "drop" : "stub") : "keep"`,
		"tools":   `tools.exists(t, t.startsWith("mcp__")) && age > 3 ? "stub" : "keep"`,
		"labels":  `!("stage" in labels && labels.stage == "explore" && age > 10)`,
		"heavy":   `tools.exists(t, t.matches("^(read|write)_.*")) && labels.exists(k, k.startsWith("st") && labels[k] != "") ? "clip" : "keep"`,
	} {
		b.Run(name, func(b *testing.B) {
			p, err := expression.Compile(source)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := p.Evaluate(f, expression.Position{Tokens: 3000, Age: uint32(i % 100), Index: i, FromEnd: 3}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := expression.Compile(`errors == 0 && age > 12 && tokens > 400 ? (age > 60 ? "drop" : "stub") : "keep"`); err != nil {
			b.Fatal(err)
		}
	}
}
