package costtest

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// counting names, in the environment, the operation that a process is to run and how often.
const counting = "COSTTEST_COUNTING"

// asked, in the environment, has instructions counted.
const asked = "COUNT_INSTRUCTIONS"

// Callgrind knows no newer instructions than those of 2013, and stumbles over signals between
// threads. With one processor and no garbage collection two runs of the same differ by one in ten
// thousand.
var plainProcessor = []string{"GOMAXPROCS=1", "GOGC=off", "GODEBUG=cpu.all=off,asyncpreemptoff=1"}

var collected = regexp.MustCompile(`Collected : (\d+)`)

// fewer and more are how often an operation is run in two processes: what the second takes more is
// what the runs take.
const (
	fewer = 10
	more  = 30
)

// instructions counts those of one run of an operation with Valgrind's callgrind; 0 where nobody
// asked for it, or it is not installed.
func instructions(t *testing.T, name string) uint64 {
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
		cmd.Env = append(append(os.Environ(), plainProcessor...), fmt.Sprintf("%s=%d %s", counting, n, name))
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
	few, many := count(fewer), count(more)
	return (many - min(few, many)) / (more - fewer)
}

// counted is what the process is to run because another counts its instructions.
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
