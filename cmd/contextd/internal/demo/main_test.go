package demo_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/contextd/contextd/cmd/contextd/internal/cli"
)

// leakFree runs the tests and then checks for leaked goroutines.
type leakFree struct{ *testing.M }

func (m leakFree) Run() int {
	code := m.M.Run()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

func TestMain(m *testing.M) {
	testscript.Main(leakFree{m}, map[string]func(){
		"contextd": func() {
			program := cli.OS(cli.Build{Version: "test"})
			os.Exit(program.Run(interruptible(), os.Args[1:]))
		},
	})
}
