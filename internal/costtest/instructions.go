package costtest

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// counting is the environment variable that names the operation that a process runs, and how often.
const counting = "COSTTEST_COUNTING"

// asked is the environment variable that enables counting instructions.
const asked = "COUNT_INSTRUCTIONS"

// Callgrind knows no instructions newer than 2013, and fails on signals between threads. With one processor
// and without garbage collection, counts of the same work differ by one in ten thousand.
var plainProcessor = []string{"GOMAXPROCS=1", "GOGC=off", "GODEBUG=cpu.all=off,asyncpreemptoff=1"}

var collected = regexp.MustCompile(`Collected : (\d+)`)

// fewer is how many runs the first of two processes makes. The difference to the second, which makes more, is
// the cost of the additional runs.
const fewer = 10

// instructions counts the instructions of one run with Valgrind's callgrind; 0 if it is not enabled or
// Valgrind is not installed. A result above allowed is measured again, keeping the lowest count of each
// process: the runtime does some work by the clock, of which there is more when the machine is slow.
func instructions(t *testing.T, op Operation, allowed uint64) uint64 {
	t.Helper()
	if os.Getenv(asked) == "" {
		t.Logf("SKIPPED: instructions are counted with %s=1: an operation takes minutes", asked)
		return 0
	}
	valgrind, err := exec.LookPath("valgrind")
	if err != nil {
		t.Log("SKIPPED: instructions are not counted: valgrind is not installed")
		return 0
	}
	count := func(n int) uint64 {
		test, _, _ := strings.Cut(t.Name(), "/")
		cmd := exec.CommandContext(t.Context(), valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null",
			os.Args[0], "-test.run", "^"+test+"$", "-test.count=1")
		cmd.Env = append(append(os.Environ(), plainProcessor...), fmt.Sprintf("%s=%d %s", counting, n, op.Name))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		found := collected.FindSubmatch(out)
		if found == nil {
			t.Fatalf("callgrind said nothing of instructions:\n%s", out)
		}
		sum, err := strconv.ParseUint(string(found[1]), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	counted := cmp.Or(op.Counted, 20)
	var each uint64
	few, many := uint64(math.MaxUint64), uint64(math.MaxUint64)
	for range rounds {
		few, many = min(few, count(fewer)), min(many, count(fewer+counted))
		if many <= few {
			t.Fatalf("%d runs execute no more instructions than %d: what happens beside them is more", fewer+counted, fewer)
		}
		if each = (many - few) / uint64(counted); each <= allowed {
			break
		}
	}
	return each
}

// counted returns what to run if this process was started to have its instructions counted.
func counted() (name string, n int, ok bool) {
	times, name, ok := strings.Cut(os.Getenv(counting), " ")
	n, err := strconv.Atoi(times)
	return name, n, ok && err == nil
}

func runCounted(t *testing.T, all []Operation, name string, n int) {
	for _, op := range all {
		if op.Name == name {
			run := op.Start(t)
			for range n {
				run()
			}
			return
		}
	}
	t.Fatalf("%s is no operation of this test", name)
}
