// Patience holds the examples to what docs/clients.md says of daemons that refuse, are slow, are
// away, or have lost their store.
//
//	patience agent ADDRESS COMMAND...
//	patience scenario CONTEXTD FILE COMMAND...
//
// It sits between the command and a daemon. To an agent, which is given one more argument, the
// address to call, it refuses calls to the daemon at ADDRESS. For a scenario it starts the
// program CONTEXTD, gives the command the address and FILE, and does to the daemon what the
// command's lines say.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

const usage = `usage: patience agent ADDRESS COMMAND
       patience scenario CONTEXTD FILE COMMAND`

// longest is how long a command may take.
const longest = 2 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) > 2 && args[0] == "agent":
		return refuseAgent(ctx, args[1], args[2:], os.Stdout)
	case len(args) > 3 && args[0] == "scenario":
		return playScenario(ctx, args[1], args[2], args[3:], os.Stdout)
	default:
		return errors.New(usage)
	}
}

// program is a command with more arguments, whose complaints are shown.
func program(ctx context.Context, command []string, more ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, command[0], slices.Concat(command[1:], more)...)
	cmd.Stderr = os.Stderr
	return cmd
}
