// Command contextd assembles LLM contexts from an immutable event log.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/contextd/contextd/cmd/contextd/internal/cli"
)

// version is set when the program is linked.
var version = "dev"

func main() {
	os.Exit(run())
}

// run ends with its context, so that what it defers happens before the exit.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return cli.OS(version).Run(ctx, os.Args[1:])
}
