// Command contextd assembles LLM contexts from an immutable event log.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/contextd/contextd/cmd/contextd/internal/cli"
)

// These are set when the program is linked.
var (
	version      = "dev"
	commit, date string // of the sources; empty for what Go notes of them
)

func main() {
	os.Exit(run())
}

// run ends with its context, so that what it defers happens before the exit. The first
// signal ends the context, the second the program, whatever it is doing.
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
