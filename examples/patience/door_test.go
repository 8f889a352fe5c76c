package main

import (
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// A client that comes back early, too often or not often enough is found; a patient one is not.
func TestDoor(t *testing.T) {
	const early, patient = -5 * time.Millisecond, time.Millisecond
	for _, test := range []struct {
		name    string
		refuses int
		calls   int
		late    time.Duration // beyond the delay that it got
		want    string
	}{
		{"patient, and let in", 2, 3, patient, ""},
		{"patient, and gives up", 99, 5, patient, ""},
		{"a timer that counts in milliseconds", 2, 3, -time.Millisecond, ""},
		{"early", 2, 3, early, "AppendEvents came back 5ms too early after try 1"},
		{"never gives up", 99, 48, patient, "AppendEvents was still tried after 10.347s, 8s is enough"},
		{"gives up at once", 9, 1, patient, "AppendEvents was tried 1 times only"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, now := newDoor(test.refuses), time.Unix(0, 0)
			for i := range test.calls {
				err := d.enter(guarded[0], now)
				if refused := err != nil; refused != (i < test.refuses) {
					t.Fatalf("call %d: %v", i, err)
				}
				now = now.Add(waits[i%len(waits)] + test.late)
			}
			err := d.fault()
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// The refusal arrives with its details, and what is let in is answered by the daemon.
func TestProxy(t *testing.T) {
	serve := func(s *grpc.Server) *grpc.ClientConn {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- s.Serve(l) }()
		conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			conn.Close()
			s.Stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		return conn
	}
	upstream := grpc.NewServer()
	contextdv1.RegisterContextServiceServer(upstream, contextdv1.UnimplementedContextServiceServer{})
	d := newDoor(1)
	client := contextdv1.NewContextServiceClient(serve(d.proxy(serve(upstream)).server()))

	_, err := client.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: "s"})
	st := status.Convert(err)
	var wait time.Duration
	for _, detail := range st.Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok {
			wait = retry.GetRetryDelay().AsDuration()
		}
	}
	if st.Code() != codes.Unavailable || wait != waits[0] {
		t.Errorf("refused with %v, to wait %s", err, wait)
	}
	for _, call := range []func() error{
		func() error {
			_, err := client.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: "s"})
			return err
		},
		func() error {
			_, err := client.GetSession(t.Context(), &contextdv1.GetSessionRequest{SessionId: "s"})
			return err
		},
	} {
		if err := call(); status.Code(err) != codes.Unimplemented {
			t.Errorf("let in, the answer is %v", err)
		}
	}
	if got, want := d.String(), "AppendEvents refused 1 times, AssembleContext refused 0 times"; got != want {
		t.Errorf("the door reports %q, want %q", got, want)
	}
}
