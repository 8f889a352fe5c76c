package budget_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/contextd/contextd/internal/budget"
)

var rewrite = flag.Bool("rewrite", false, "write the table of docs/calibration.md anew")

// modelCall is a prompt of 90,000 estimated tokens as its provider took it.
type modelCall struct {
	real     uint64 // 0: not reported
	rejected bool
}

// lesson is a session with a declared window of 128,000 tokens: the estimate is a sixth too low, and the
// real window turns out to be smaller than declared. After that, prompts fit.
func lesson() []modelCall {
	calls := []modelCall{{real: 105_000}, {real: 105_000}, {real: 105_000}, {real: 105_000}, {rejected: true}}
	for range 4 {
		calls = append(calls, modelCall{real: 105_000})
	}
	return append(calls, modelCall{real: 130_000, rejected: true}, modelCall{real: 105_000}, modelCall{real: 30_000}, modelCall{real: 400})
}

// learn replays the lesson and calls row after each call.
func learn(row func(number int, call modelCall, c budget.Calibration, b budget.Budget)) error {
	models, err := budget.NewModels()
	if err != nil {
		return err
	}
	none := 0.0
	b, err := budget.Spec{MaxTokens: 128_000, OutputReserve: 8_000, SafetyMargin: &none, Tokenizer: budget.TokenizerHeuristic}.Resolve(models)
	if err != nil {
		return err
	}
	var c budget.Calibration
	for i, call := range lesson() {
		if call.rejected {
			c = c.Reject(90_000, call.real)
		} else {
			c = c.Observe(90_000, call.real)
		}
		row(i+1, call, c, b.Calibrated(c))
	}
	return nil
}

func (c modelCall) String() string {
	switch {
	case c.rejected && c.real == 0:
		return "rejected"
	case c.rejected:
		return fmt.Sprintf("rejected, %d tokens", c.real)
	default:
		return fmt.Sprintf("%d tokens", c.real)
	}
}

func ExampleCalibration() {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	err := learn(func(number int, call modelCall, c budget.Calibration, b budget.Budget) {
		fmt.Fprintf(out, "%d\t%s\t%.6f\t%d\n", number, call, c.Factor(), b.Target)
	})
	if err != nil {
		fmt.Println(err)
	}
	if err := out.Flush(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1   105000 tokens            1.033334  116128
	// 2   105000 tokens            1.060001  113207
	// 3   105000 tokens            1.081334  110974
	// 4   105000 tokens            1.098401  109249
	// 5   rejected                 1.263162  94999
	// 6   105000 tokens            1.257131  95455
	// 7   105000 tokens            1.251477  95886
	// 8   105000 tokens            1.246177  96294
	// 9   105000 tokens            1.241208  96680
	// 10  rejected, 130000 tokens  1.444445  83076
	// 11  105000 tokens            1.427084  84087
	// 12  30000 tokens             1.401357  85631
	// 13  400 tokens               1.401357  85631
}

const page = "../../docs/calibration.md"

// TestPageShowsTheLesson holds the page's table to what the code answers.
func TestPageShowsTheLesson(t *testing.T) {
	const begin, end = "<!-- lesson -->\n", "<!-- end of lesson -->\n"
	var table strings.Builder
	table.WriteString("\n| call | the provider counted | calibration | target of the next context |\n| ---: | --- | ---: | ---: |\n")
	err := learn(func(number int, call modelCall, c budget.Calibration, b budget.Budget) {
		fmt.Fprintf(&table, "| %d | %s | %.6f | %d |\n", number, call, c.Factor(), b.Target)
	})
	if err != nil {
		t.Fatal(err)
	}
	table.WriteString("\n")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	shown, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", page)
	}
	if *rewrite {
		if err := os.WriteFile(page, []byte(before+begin+table.String()+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if shown != table.String() {
		t.Errorf("the page shows\n%s\nthe code answers\n%s\n(-rewrite writes it)", shown, table.String())
	}
}
