// Package costtest holds what operations cost to a file of budgets. What is counted, allocations,
// their bytes and instructions, depends neither on the machine's speed nor on what else runs.
package costtest

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rewrite is shared with the tests that import this package.
var rewrite = flag.Bool("rewrite-costs", false, "write what operations cost into the file of budgets instead of holding them to it")

// Operation is something whose costs have a budget.
type Operation struct {
	// Name is that of its row: words without a tab.
	Name string
	// Start makes what the operation works on and returns it, ready to be run again and again.
	// Each run should cost the same.
	Start func(testing.TB) (run func())
	// Counted is over how many runs instructions are counted; 0 is 20. What executes few needs
	// more, for what happens beside it to be small.
	Counted int
}

// Cost is what one run of an operation takes.
type Cost struct {
	Allocations, Bytes uint64
	// Instructions are counted without the processor's extensions; 0 is not known.
	Instructions uint64
}

// slack is the part of a budget by which it may be exceeded: maps and slices grow now and then.
const slack = 0.03

// slackOfInstructions is more: what a store does in the background is among them.
const slackOfInstructions = 0.1

// warmUps are runs before those that are measured, and runs how many are measured, in each of some
// rounds.
const (
	warmUps = 20
	runs    = 50
	rounds  = 3
)

// Hold fails the test where an operation costs more than its row in a file allows. With
// -rewrite-costs it writes the row. Instructions are counted with COUNT_INSTRUCTIONS=1 where Valgrind
// is installed.
func Hold(t *testing.T, file string, all ...Operation) {
	t.Helper()
	if name, n, ok := counted(); ok {
		runCounted(t, all, name, n)
		return
	}
	budgets, err := read(file)
	if err != nil && (!*rewrite || !errors.Is(err, fs.ErrNotExist)) {
		t.Fatal(err)
	}
	for _, op := range all {
		t.Run(op.Name, func(t *testing.T) {
			budget, ok := budgets[op.Name]
			got := measure(t, op)
			got.Instructions = instructions(t, op, most(budget.Instructions, slackOfInstructions))
			t.Logf("%d allocations, %d bytes, %d instructions", got.Allocations, got.Bytes, got.Instructions)
			if *rewrite {
				got.Instructions = cmp.Or(got.Instructions, budgets[op.Name].Instructions)
				budgets[op.Name] = got
				return
			}
			if !ok {
				t.Fatalf("%s has no row in %s; -rewrite-costs adds it", op.Name, file)
			}
			over(t, "allocations", got.Allocations, budget.Allocations, slack)
			over(t, "bytes", got.Bytes, budget.Bytes, slack)
			if got.Instructions > 0 && budget.Instructions == 0 {
				t.Logf("SKIPPED: %s has no budget of instructions; -rewrite-costs adds it", op.Name)
				return
			}
			over(t, "instructions", got.Instructions, budget.Instructions, slackOfInstructions)
		})
	}
	if *rewrite && !t.Failed() {
		if err := write(file, budgets); err != nil {
			t.Fatal(err)
		}
	}
}

func over(t *testing.T, what string, got, budget uint64, slack float64) {
	t.Helper()
	if got > most(budget, slack) {
		t.Errorf("%d %s a run, and the budget is %d", got, what, budget)
	}
}

// most is what may be counted under a budget.
func most(budget uint64, slack float64) uint64 { return uint64(float64(budget) * (1 + slack)) }

// measure counts what runs of an operation allocate, in the round in which that is least: a
// collection of garbage empties pools, and what other tests started may go on in the background.
func measure(t *testing.T, op Operation) Cost {
	run := op.Start(t)
	for range warmUps {
		run()
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	least := Cost{Allocations: math.MaxUint64, Bytes: math.MaxUint64}
	for range rounds {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			run()
		}
		runtime.ReadMemStats(&after)
		least.Allocations = min(least.Allocations, (after.Mallocs-before.Mallocs)/runs)
		least.Bytes = min(least.Bytes, (after.TotalAlloc-before.TotalAlloc)/runs)
	}
	return least
}

const heading = `# What one run of each operation may cost, by the tests that import internal/costtest.
# operation	allocations	bytes	instructions
`

// read reads a file of budgets: a row of tab-separated fields for each, instructions "-" where
// they are not known.
func read(file string) (map[string]Cost, error) {
	out := map[string]Cost{}
	data, err := os.ReadFile(file)
	if err != nil {
		return out, err
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 4 {
			return out, fmt.Errorf("%s: %q has %d fields instead of 4", file, line, len(fields))
		}
		var numbers [3]uint64
		for i, f := range fields[1:] {
			if i == 2 && f == "-" {
				continue
			}
			if numbers[i], err = strconv.ParseUint(f, 10, 64); err != nil {
				return out, fmt.Errorf("%s: %q: %w", file, line, err)
			}
		}
		out[fields[0]] = Cost{numbers[0], numbers[1], numbers[2]}
	}
	return out, lines.Err()
}

func write(file string, all map[string]Cost) error {
	var out strings.Builder
	out.WriteString(heading)
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		c := all[name]
		instructions := "-"
		if c.Instructions > 0 {
			instructions = strconv.FormatUint(c.Instructions, 10)
		}
		fmt.Fprintf(&out, "%s\t%d\t%d\t%s\n", name, c.Allocations, c.Bytes, instructions)
	}
	return os.WriteFile(file, []byte(out.String()), 0o600)
}
