// Command go is a client of contextd, twice: a small agent loop, and the scenario that
// clients in all languages run.
//
//	go run ./examples/go agent [ADDRESS]
//	go run ./examples/go scenario ADDRESS FILE
//
// What happens goes into the log, and before each model call the context is assembled
// from it. The client keeps the messages it was sent, asks only for what is new, and
// checks every hash.
package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

const usage = `usage: go agent [ADDRESS]
       go scenario ADDRESS FILE`

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	switch {
	case len(args) == 3 && args[0] == "scenario":
		return connected(args[1], func(client contextdv1.ContextServiceClient) error {
			return runScenario(ctx, client, args[2], out)
		})
	case len(args) == 1 && args[0] == "agent":
		address, stop, err := sidecar(ctx)
		if err != nil {
			return err
		}
		defer stop()
		return run(ctx, []string{"agent", address}, out)
	case len(args) == 2 && args[0] == "agent":
		return connected(args[1], func(client contextdv1.ContextServiceClient) error {
			return runAgent(ctx, client, out)
		})
	default:
		return fmt.Errorf("%s", usage)
	}
}

func connected(address string, use func(contextdv1.ContextServiceClient) error) error {
	conn, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		// An event, and so a message, may be larger than gRPC's default of 4 MiB.
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)),
	)
	if err != nil {
		return err
	}
	defer conn.Close()
	return use(contextdv1.NewContextServiceClient(conn))
}
