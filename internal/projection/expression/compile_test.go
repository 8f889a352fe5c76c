package expression_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/projection/expression"
)

// aGroup is a turn with two calls, one of which failed.
var aGroup = expression.Fixed{
	Roles: []string{"assistant", "tool"}, Tools: []string{"read_file", "mcp__search"}, Labels: map[string]string{"stage": "plan"},
	TextChars: 900, ResultChars: 800, Results: 2, Errors: 1,
}

var standing = expression.Position{
	Tokens: 300, Age: 7, ModelCalls: 12, Index: 4, FromEnd: 9, Content: said{"I look.", []expression.Call{
		{Name: "read_file", Arguments: `{"path":"a.go","lines":[1,2]}`, Result: "package a", Answered: true, Failed: is(false), SucceededLater: is(true)},
		{Name: "mcp__search", Arguments: `{"query`, Result: "Traceback: boom", Answered: true, Failed: is(true), SucceededLater: is(true)},
	}},
}

func is(b bool) func() bool { return func() bool { return b } }

// said is what a group says.
type said struct {
	text  string
	calls []expression.Call
}

func (s said) Text() string             { return s.text }
func (s said) Calls() []expression.Call { return s.calls }

func TestEvaluate(t *testing.T) {
	for source, want := range map[string]expression.Verdict{
		`true`:   expression.Keep,
		`false`:  expression.Drop,
		`"keep"`: expression.Keep,
		`"clip"`: expression.Clip,
		`"stub"`: expression.Stub,
		`"drop"`: expression.Drop,
		`roles == ["assistant", "tool"] && tools == ["read_file", "mcp__search"]`:       expression.Keep,
		`text_chars == 900 && result_chars == 800 && results == 2 && errors == 1`:       expression.Keep,
		`tokens == 300 && age == 7 && model_calls == 12 && index == 4 && from_end == 9`: expression.Keep,
		`labels == {"stage": "plan"} && "stage" in labels && labels.stage == "plan"`:    expression.Keep,
		`tools.exists(t, t.startsWith("mcp__")) ? "stub" : "keep"`:                      expression.Stub,
		`tools.all(t, t.matches("^(read|write)_"))`:                                     expression.Drop,
		`"stage" in labels && labels["stage"] in ["explore", "plan"] ? "clip" : "keep"`: expression.Clip,
		`tools.exists(t, t.matches("^[a-z]{4}_.{2,9}$"))`:                               expression.Keep,
		`tools.exists(t, t.matches("^" + roles[1] + "{2}$"))`:                           expression.Drop,
		`!("other" in labels) || labels.other == "x"`:                                   expression.Keep,
		"age > 3 // old\n ? (tokens > 1000 ? 'drop' : 'stub') : 'keep'":                 expression.Stub,
		`tools[0] == "read_file" ? ["keep", "stub"][1] : "keep"`:                        expression.Stub,

		`text == "I look." && size(calls) == 2 && calls[0].name == tools[0]`:                               expression.Keep,
		`calls[0].arguments.path == "a.go" && calls[0].arguments.lines[1] == 2`:                            expression.Keep,
		`calls[1].arguments == "{\"query" && has(calls[0].arguments.path) && !has(calls[0].arguments.to)`:  expression.Keep,
		`calls.exists(c, c.failed && c.answered && c.result.contains("Traceback") && c.succeeded_later)`:   expression.Keep,
		`calls.filter(c, c.name.startsWith("mcp__")).all(c, c.result.matches("^Trace")) ? "stub" : "keep"`: expression.Stub,
		`calls[0] == calls[0] && calls[0] != calls[1] && dyn(calls[0]).name == "read_file"`:                expression.Keep,
	} {
		p, err := expression.Compile(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if got, err := p.Evaluate(expression.NewFacts(aGroup), standing); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", source, got, err, want)
		}
	}
}

func TestRefused(t *testing.T) {
	for source, want := range map[string]string{
		"":                        "must not be empty",
		" \n":                     "must not be empty",
		"age <":                   "1:6: Syntax error",
		"age < 3\n  && soup":      "2:6: undeclared reference to 'soup'",
		"age < 3 && tools":        "1:12: ",
		"age":                     `1:1: must be a bool or one of the texts "keep", "clip", "stub" and "drop", not int`,
		"dyn(age)":                "must be a bool",
		`age > 3 ? true : "drop"`: "1:9: ",
		`age > 3 ? "keep" : age > 1 ? "skip" : "drop"`:                           `1:30: "skip" is no verdict`,
		`tools.exists(t, t.matches("("))`:                                        "1:27: ",
		`{"a": 1, "b": 2}.exists(k, k == "a")`:                                   "1:1: only lists and labels can be gone through",
		`[{"a": 1}].all(m, m.all(k, k == "a"))`:                                  "1:19: only lists",
		`dyn(labels).all(k, k == "a")`:                                           "only lists",
		`tools.all(a, tools.all(b, tools.all(c, tools.all(d, a + b == c + d))))`: "may cost up to",
		strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200):             "recursion",
		strings.Repeat("true && ", 2000) + "true":                                "size",
		`calls.all(c, c.body == "")`:                                             "1:15: undefined field 'body'",
		`calls[0].arguments.all(k, k == "path")`:                                 "only lists",
		`calls.exists(c, calls.exists(d, c.result.contains(d.result)))`:          "the limit is 50000",
		`text.matches("` + strings.Repeat("(a{9})*", 100) + `")`:                 "1:14: a regular expression has a program of size",
		`now() > 3`: "undeclared reference to 'now'",
	} {
		_, err := expression.Compile(source)
		var wrong *expression.Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v; want %s", source, err, want)
		}
	}
}

// TestFails has expressions that fail for this group alone.
func TestFails(t *testing.T) {
	t.Run("a text of more than it may cost", func(t *testing.T) {
		p, err := expression.Compile(`text.contains("needle")`)
		if err != nil {
			t.Fatal(err)
		}
		long := expression.Position{Content: said{text: strings.Repeat("hay", 10*expression.MaxContentCost)}}
		if got, err := p.Evaluate(expression.NewFacts(aGroup), long); err == nil || !strings.Contains(err.Error(), "cost limit") || got != expression.Keep {
			t.Errorf("%v, %v", got, err)
		}
	})
	long := aGroup
	long.Tools = nil
	for i := range 3000 {
		long.Tools = append(long.Tools, fmt.Sprint("tool", i))
	}
	for name, c := range map[string]struct {
		source string
		of     expression.Fixed
		want   string
	}{
		"a label that it has not":    {`labels.other == "x"`, aGroup, "no such key"},
		"a tool that it has not":     {`tools[5] == "x"`, aGroup, "index"},
		"by zero":                    {`age / (errors - 1) == 1`, aGroup, "division by zero"},
		"no verdict":                 {`tools[0]`, aGroup, `"read_file" is no verdict`},
		"what arguments have not":    {`calls[0].arguments.to == "x"`, aGroup, "no such key: to"},
		"a large regular expression": {`text.matches(roles[0] + "(a{999})(b{999})")`, aGroup, "program of size"},
		"text for a number":          {`calls[0].arguments.path > 3`, aGroup, "no such overload"},
		"more than it may cost":      {`!tools.exists(t, t.contains("none"))`, long, "cost limit"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := expression.Compile(c.source)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Evaluate(expression.NewFacts(c.of), standing)
			if err == nil || !strings.Contains(err.Error(), c.want) || got != expression.Keep {
				t.Errorf("%v, %v; want %s", got, err, c.want)
			}
		})
	}
}

// TestLabelsAreInOrder would see the order of a map change.
func TestLabelsAreInOrder(t *testing.T) {
	f := aGroup
	f.Labels = map[string]string{}
	for _, k := range []string{"f", "b", "d", "a", "e", "c"} {
		f.Labels[k] = k
	}
	p, err := expression.Compile(`labels.map(k, k) == ["a", "b", "c", "d", "e", "f"]`)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if got, err := p.Evaluate(expression.NewFacts(f), standing); err != nil || got != expression.Keep {
			t.Fatalf("%v, %v", got, err)
		}
	}
}

// TestWatchedAndNot holds that what an evaluation says does not depend on whether its
// cost is watched, which decides the size of the group alone.
func TestWatchedAndNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := expression.Compile(rapid.SampledFrom([]string{
			`age < 5 || errors > 0`,
			`tools.exists(t, t.startsWith("a")) ? "stub" : "keep"`,
			`"k" in labels && labels.k == "v" ? "clip" : size(tools) > 1 ? "drop" : "keep"`,
			`labels.exists(k, labels[k] == "v")`,
		}).Draw(t, "source"))
		if err != nil {
			t.Fatal(err)
		}
		f := expression.Fixed{
			Tools:  rapid.SliceOfN(rapid.SampledFrom([]string{"a1", "b2", "c"}), 0, 4).Draw(t, "tools"),
			Labels: rapid.MapOfN(rapid.SampledFrom([]string{"k", "l"}), rapid.SampledFrom([]string{"v", "w"}), 0, 2).Draw(t, "labels"),
			Errors: rapid.IntRange(0, 1).Draw(t, "errors"),
		}
		now := expression.Position{Age: rapid.Uint32Range(0, 9).Draw(t, "age")}
		plain, err := p.Evaluate(expression.NewFacts(f), now)
		if err != nil {
			t.Fatal(err)
		}
		f.Roles = []string{strings.Repeat("long", 20)} // which no expression looks at
		watched, err := p.Evaluate(expression.NewFacts(f), now)
		if err != nil || watched != plain {
			t.Errorf("watched it is %v, %v; else %v", watched, err, plain)
		}
	})
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{`age < 3`, `tools.exists(t, t == "a") ? "stub" : "keep"`, `labels.a`, `"drop"`, `[1, 2`, `tools.map(t, t + t)[0]`, "age <\n\n'x'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, err := expression.Compile(source)
		if err != nil {
			var wrong *expression.Error
			if !errors.As(err, &wrong) || wrong.Reason == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		facts := expression.NewFacts(aGroup)
		first, firstErr := p.Evaluate(facts, standing)
		again, againErr := p.Evaluate(expression.NewFacts(aGroup), standing)
		if first != again || (firstErr == nil) != (againErr == nil) {
			t.Fatalf("%v, %v; then %v, %v", first, firstErr, again, againErr)
		}
	})
}
