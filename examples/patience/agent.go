package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// short is the patience that an agent is given where it is never let in. On a busy machine the first call of a virtual
// machine may take seconds, and there must be time for another.
const short = 8 * time.Second

// refuseAgent runs an agent twice and reports to out. First, appends and assemblies are refused
// twice each: the agent must succeed, and never come back earlier than it was asked to. Then
// they are always refused: it must fail when its patience is over.
func refuseAgent(ctx context.Context, daemon string, command []string, out io.Writer) error {
	conn, err := grpc.NewClient(daemon, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()

	opens := newDoor(2)
	ran, err := through(ctx, opens, conn, command)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "let in after two tries:", opens)
	if ran != nil {
		return fmt.Errorf("refused twice, the command failed: %w", ran)
	}
	if err := opens.fault(); err != nil {
		return err
	}

	shut := newDoor(math.MaxInt)
	ran, err = through(ctx, shut, conn, command, "CONTEXTD_PATIENCE="+short.String())
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "never let in:", shut)
	if ran == nil {
		return errors.New("always refused, the command succeeded")
	}
	return shut.fault()
}

// through runs the command with a door before the daemon. What the command ended with is
// the first result.
func through(ctx context.Context, d *door, conn *grpc.ClientConn, command []string, env ...string) (ran, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := d.proxy(conn).server()
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()

	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	cmd := program(ctx, command, l.Addr().String())
	cmd.Env, cmd.Stdout = append(os.Environ(), env...), os.Stderr
	ran = cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("the command did not end: %w", ctx.Err())
	}
	server.Stop()
	return ran, errors.Join(err, <-served)
}
