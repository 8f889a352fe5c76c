// Patience holds an agent loop to what docs/clients.md says of RetryInfo.
//
//	patience ADDRESS COMMAND...
//
// It sits between the command, which is given one more argument, the address to call, and
// the daemon at ADDRESS, and runs the command twice. First, appends and assemblies are
// refused twice each, with RetryInfo: the command must succeed, and never come back earlier
// than it was asked to. Then they are always refused: the command must fail, after a few more
// tries.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// patience is how long a command may take.
const patience = 2 * time.Minute

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: patience ADDRESS COMMAND...")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := check(ctx, os.Args[1], os.Args[2:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check runs a command under both doors and reports to out.
func check(ctx context.Context, daemon string, command []string, out io.Writer) error {
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
	ran, err = through(ctx, shut, conn, command)
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
func through(ctx context.Context, d *door, conn *grpc.ClientConn, command []string) (ran, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := proxy(d, conn)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()

	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], append(command[1:len(command):len(command)], l.Addr().String())...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	ran = cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("the command did not end: %w", ctx.Err())
	}
	server.Stop()
	return ran, errors.Join(err, <-served)
}
