// Package costtest compares the costs of operations with budgets in a file. It counts allocations, their
// bytes and instructions, which depend neither on the machine's speed nor on its load.
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

// rewrite is a flag of every test binary that imports this package.
var rewrite = flag.Bool("rewrite-costs", false, "write what operations cost into the file of budgets instead of holding them to it")

// Operation is an operation with a cost budget.
type Operation struct {
	// Name is the name of the operation's row: words without a tab.
	Name string
	// Start prepares what the operation works on, and returns the operation. Each run should cost the same.
	Start func(testing.TB) (run func())
	// Counted is how many runs the instructions are averaged over; 0 is 20. A cheap operation needs more, so
	// that other work in the process does not matter.
	Counted int
}

// Cost is the cost of one run of an operation.
type Cost struct {
	Allocations, Bytes uint64
	// Instructions are counted without the processor's extensions; 0 is unknown.
	Instructions uint64
}

// slack is the share by which a budget may be exceeded, since maps and slices grow now and then.
const slack = 0.03

// slackOfInstructions is larger, since a store's background work is counted too.
const slackOfInstructions = 0.1

// warmUps is how many runs come before the measured ones. runs is how many are measured per round.
const (
	warmUps = 20
	runs    = 50
	rounds  = 3
)

// Hold fails the test if an operation costs more than its row in the file allows. With -rewrite-costs it
// writes the row instead. Instructions are only counted with COUNT_INSTRUCTIONS=1, and only if Valgrind is
// installed.
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

// most is the largest count that a budget allows.
func most(budget uint64, slack float64) uint64 { return uint64(float64(budget) * (1 + slack)) }

// measure counts what an operation allocates per run, and takes the cheapest round: a garbage collection
// empties pools, and other tests may still work in the background.
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

// read reads a file of budgets: rows of tab-separated fields; instructions are "-" if unknown.
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
