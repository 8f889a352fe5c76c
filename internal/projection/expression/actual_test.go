package expression_test

import (
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/projection/expression"
)

// A value that holds another one twice doubles what a comparison goes through, and takes no more memory. Without a
// bound before the comparison, these would take years.
func TestValuesThatHoldThemselvesTwice(t *testing.T) {
	lists, maps, sums := `[[1]]`+strings.Repeat(".map(x, [x, x])", 50), `[{"c": 1}]`+strings.Repeat(`.map(x, {"a": x, "b": x})`, 24), strings.Repeat(".map(x, x + x)", 50)
	for _, source := range []string{
		lists + `.all(x, x == x)`,
		lists + `.all(x, x != x)`,
		lists + `.all(x, dyn(x) == dyn(x) || true)`,
		lists + `.all(x, x in [x])`,
		lists + `.all(x, dyn(x) in labels)`,
		lists + `.all(x, {x: 1} == {x: 1})`,
		maps + `.all(x, x == x)`,
		`[tools]` + sums + `.all(x, x in [x])`,
		`[calls[0].arguments.lines]` + sums + `.all(x, x == x)`,
		`[calls[0].arguments.lines]` + sums + `.all(x, "none" in x)`,
	} {
		p, err := expression.Compile(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		v, err := p.Evaluate(expression.NewFacts(aGroup), standing)
		if err == nil || !strings.Contains(err.Error(), "cost limit") || v != expression.Keep {
			t.Errorf("%s: %v, %v", source, v, err)
		}
	}
}

// What a group says is read once for an evaluation, whatever its expression names how often, and
// going through all of it costs what it takes. Without that these would take minutes.
func TestContentIsReadOnceAndGoneThroughAtItsCost(t *testing.T) {
	const size = 1 << 18
	items := `{"a":[0` + strings.Repeat(",1", size/2) + `]}`
	const numbers = "[0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9]"
	for source, stops := range map[string]bool{
		numbers + `.all(i, ` + numbers + `.all(j, size(calls[0].arguments.a) > i + j))`: false,
		numbers + `.all(i, ` + numbers + `.all(j, !calls[0].failed))`:                   false,
		numbers + `.all(i, ` + numbers + `.all(j, size(text) > i + j))`:                 true,
		numbers + `.all(i, calls[0].arguments == calls[0].arguments)`:                   true,
		numbers + `.all(i, !(calls[0].arguments != calls[0].arguments))`:                true,
		numbers + `.all(i, calls[0].arguments in [calls[0].arguments, {}])`:             true,
	} {
		failed := 0
		now := standing
		now.Content = said{strings.Repeat("x", size), []expression.Call{{
			Name: "read", Arguments: items, Answered: true, Failed: func() bool { failed++; return false },
		}}}
		p, err := expression.Compile(source)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		v, err := p.Evaluate(expression.NewFacts(aGroup), now)
		if stopped := err != nil && strings.Contains(err.Error(), "cost limit"); v != expression.Keep || stopped != stops || failed > 1 {
			t.Errorf("%s: %v, %v; failed was asked %d times", source, v, err, failed)
		}
	}
}
