// Command contextd assembles LLM contexts from an immutable event log.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/contextd/contextd/cmd/contextd/internal/cli"
)

// These are set by the linker.
var (
	version      = "dev"
	commit, date string // of the sources; if empty, what the Go tool recorded is used
)

func main() {
	os.Exit(run())
}

// run returns an exit code, so that deferred calls run before the exit. The first signal stops the program in
// order; the second ends it at once.
func run() int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		<-signals
		stop()
		<-signals
		os.Exit(cli.ExitAtOnce)
	}()
	return cli.OS(cli.Build{Version: version, Commit: commit, Date: date}).Run(ctx, os.Args[1:])
}
