package server_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/server"
	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func numbered(i int) *contextdv1.AppendEventStreamRequest {
	e := user(fmt.Sprintf("event %d", i))
	e.EventId = fmt.Sprint(i)
	return &contextdv1.AppendEventStreamRequest{Append: &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{e}}}
}

type appendStream = contextdv1.ContextService_AppendEventStreamClient

func (a *api) stream(t *testing.T) appendStream {
	t.Helper()
	stream, err := a.AppendEventStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func send(t *testing.T, stream appendStream, requests ...*contextdv1.AppendEventStreamRequest) {
	t.Helper()
	for _, r := range requests {
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
	}
}

// acked expects the next answer to be for event i.
func acked(t *testing.T, stream appendStream, i int) {
	t.Helper()
	resp, err := stream.Recv()
	if err != nil {
		t.Fatalf("waiting for event %d: %v", i, err)
	}
	if got := resp.GetAppended().GetReceipts()[0]; got.GetEventId() != fmt.Sprint(i) || got.GetSeq() != uint64(i) {
		t.Fatalf("answer is for %v; want event %d", got, i)
	}
}

func TestStreamAnswersInOrder(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t), func(o *server.Options) { o.Limits.StreamWindow = 4 })
		stream := a.stream(t)
		const n = 500
		go func() {
			for i := 1; i <= n; i++ {
				if stream.Send(numbered(i)) != nil {
					return
				}
			}
			_ = stream.CloseSend() // fails with the stream, which the receiver sees
		}()
		for i := 1; i <= n; i++ {
			acked(t, stream, i)
		}
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("behind the last answer: %v", err)
		}
		if got := len(a.read(t, "s")); got != n {
			t.Errorf("the log holds %d events", got)
		}
	})
}

// TestStreamPipelines admits appends while none of those before is durable.
func TestStreamPipelines(t *testing.T) {
	gate := newGatedStore(stores["memory"](t))
	a := serve(t, gate)
	stream := a.stream(t)
	send(t, stream, numbered(1), numbered(2), numbered(3))
	for i := 1; i <= 3; i++ {
		if id := <-gate.admitted; id != fmt.Sprint(i) {
			t.Fatalf("admitted %s; want %d", id, i)
		}
	}
	for i := 1; i <= 3; i++ {
		gate.sync <- nil
		acked(t, stream, i)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// TestStreamEndsAtTheFirstError answers what came before, and appends nothing of
// what came after.
func TestStreamEndsAtTheFirstError(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		stream := a.stream(t)
		bad := numbered(3)
		bad.Append.Events = append(bad.Append.Events, message(contextdv1.Role_ROLE_TOOL, result("nobody", text("x"))))
		send(t, stream, numbered(1), numbered(2), bad)
		// The stream may end before these are on their way.
		for i := 4; i < 10 && stream.Send(numbered(i)) == nil; i++ {
			continue
		}
		acked(t, stream, 1)
		acked(t, stream, 2)
		_, err := stream.Recv()
		checkRefusal(t, err, badInput{
			code: codes.InvalidArgument, reason: invalid, field: "append.events[1].message.blocks[0].tool_result.call_id",
		})
		if got := len(a.read(t, "s")); got != 2 {
			t.Errorf("the log holds %d events; want those before the error", got)
		}
	})
}

func TestStreamRefusals(t *testing.T) {
	a := serve(t, stores["memory"](t))
	tests := map[string]struct {
		request *contextdv1.AppendEventStreamRequest
		field   string
	}{
		"nothing":    {&contextdv1.AppendEventStreamRequest{}, "append"},
		"no events":  {&contextdv1.AppendEventStreamRequest{Append: &contextdv1.AppendEventsRequest{SessionId: "s"}}, "append.events"},
		"no session": {&contextdv1.AppendEventStreamRequest{Append: &contextdv1.AppendEventsRequest{Events: conversation()}}, "append.session_id"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stream := a.stream(t)
			send(t, stream, test.request)
			_, err := stream.Recv()
			checkRefusal(t, err, badInput{code: codes.InvalidArgument, reason: invalid, field: test.field})
		})
	}
}

// TestStreamStoreFails gets the store's error to the client, without its cause.
func TestStreamStoreFails(t *testing.T) {
	gate := newGatedStore(stores["memory"](t))
	a := serve(t, gate)
	stream := a.stream(t)
	send(t, stream, numbered(1), numbered(2))
	<-gate.admitted
	<-gate.admitted
	gate.sync <- nil
	acked(t, stream, 1)
	gate.sync <- &eventlog.UnavailableError{Cause: errors.New("sync /dev/sda: EIO")}
	_, err := stream.Recv()
	checkRefusal(t, err, badInput{code: codes.Unavailable, reason: apierr.ReasonStoreFailed})
}

// TestDrainAnswersWhatWasTakenIn stops in the middle of a stream.
func TestDrainAnswersWhatWasTakenIn(t *testing.T) {
	gate := newGatedStore(stores["memory"](t))
	a := serve(t, gate)
	stream := a.stream(t)
	send(t, stream, numbered(1), numbered(2))
	<-gate.admitted
	<-gate.admitted
	a.server.Drain()
	gate.sync <- nil
	acked(t, stream, 1)
	gate.sync <- nil
	acked(t, stream, 2)
	_, err := stream.Recv()
	checkRefusal(t, err, badInput{code: codes.Unavailable, reason: apierr.ReasonDraining})

	_, err = a.AppendEvents(t.Context(), numbered(3).GetAppend())
	checkRefusal(t, err, badInput{code: codes.Unavailable, reason: apierr.ReasonDraining})
	if got := len(a.read(t, "s")); got != 2 {
		t.Errorf("the log holds %d events", got)
	}
}

// TestStreamClientGoes leaves nothing behind when a client vanishes: goleak sees
// what stays.
func TestStreamClientGoes(t *testing.T) {
	gate := newGatedStore(stores["memory"](t))
	a := serve(t, gate, func(o *server.Options) { o.Limits.StreamWindow = 1 })
	stream := a.stream(t)
	for i := 1; i <= 10; i++ {
		send(t, stream, numbered(i))
	}
	<-gate.admitted
}
