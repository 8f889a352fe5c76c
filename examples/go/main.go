// Command go shows two clients of contextd: a small agent loop, and the scenarios that clients in all
// languages run.
//
//	go run ./examples/go agent [ADDRESS]
//	go run ./examples/go scenario ADDRESS FILE
//
// An agent appends what happens to the log, and assembles the context from it before each model call. The
// package client holds the context, requests only new messages, checks every hash, and waits while the daemon
// is not available.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/contextd/contextd/client"
)

const usage = `usage: go agent [ADDRESS]
       go scenario ADDRESS FILE`

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	switch {
	case len(args) == 3 && args[0] == "scenario":
		return connected(args[1], func(c *client.Client) error {
			return runScenario(ctx, c, args[2], in, out)
		})
	case len(args) == 1 && args[0] == "agent":
		address, stop, err := sidecar(ctx)
		if err != nil {
			return err
		}
		defer stop()
		return run(ctx, []string{"agent", address}, in, out)
	case len(args) == 2 && args[0] == "agent":
		return connected(args[1], func(c *client.Client) error {
			return runAgent(ctx, c, out)
		})
	default:
		return errors.New(usage)
	}
}

func connected(address string, use func(*client.Client) error) error {
	c, err := client.New(client.Options{Address: address})
	if err != nil {
		return err
	}
	defer c.Close()
	return use(c)
}
