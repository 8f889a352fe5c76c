package rpc_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// bareSocket is the environment variable with the socket on which this program serves bareService.
const bareSocket = "BENCH_BARE_SOCKET"

// bareService only answers appends: what remains is the cost of gRPC and of the client.
type bareService struct {
	contextdv1.UnimplementedContextServiceServer
}

func (bareService) AppendEvents(_ context.Context, req *contextdv1.AppendEventsRequest) (*contextdv1.AppendEventsResponse, error) {
	return &contextdv1.AppendEventsResponse{Receipts: []*contextdv1.EventReceipt{{EventId: req.GetEvents()[0].GetEventId(), Seq: 1}}}, nil
}

func (s bareService) AppendEventStream(stream grpc.BidiStreamingServer[contextdv1.AppendEventStreamRequest, contextdv1.AppendEventStreamResponse]) error {
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		answer, _ := s.AppendEvents(stream.Context(), req.GetAppend())
		if err := stream.Send(&contextdv1.AppendEventStreamResponse{Appended: answer}); err != nil {
			return err
		}
	}
}

// serveBare serves until it is interrupted, if the environment asks for it.
func serveBare() {
	socket := os.Getenv(bareSocket)
	if socket == "" {
		return
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		panic(err)
	}
	s := grpc.NewServer()
	contextdv1.RegisterContextServiceServer(s, bareService{})
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, syscall.SIGTERM)
	go func() {
		<-interrupted
		s.Stop()
	}()
	if err := s.Serve(l); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// startBare starts this program as a server of bareService.
func startBare(b *testing.B) *process {
	b.Helper()
	socket := filepath.Join(b.TempDir(), "b.sock")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), bareSocket+"="+socket)
	return launch(b, cmd, socket)
}
