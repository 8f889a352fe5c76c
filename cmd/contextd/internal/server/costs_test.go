package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/costtest"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// costsFile has what an append may cost, from the client's message to the client's answer.
const costsFile = "testdata/costs.txt"

func costStore(tb testing.TB) eventlog.Store {
	tb.Helper()
	store, err := disklog.Open(tb.TempDir(), disklog.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return store
}

// costEvents returns what makes events of a size, each with another event_id.
func costEvents(size int) func() *contextdv1.Event {
	text := strings.Repeat("func handler(ctx context.Context) error { return step(ctx, 17) }\n", size/65+1)[:size]
	n := 0
	return func() *contextdv1.Event {
		n++
		e := user(text)
		e.EventId = fmt.Sprintf("event-%06d", n)
		return e
	}
}

// TestCosts holds appends through gRPC to testdata/costs.txt.
func TestCosts(t *testing.T) {
	unary := func(size int) costtest.Operation {
		return costtest.Operation{Name: fmt.Sprintf("append %d bytes to the disk", size), Counted: 400, Start: func(tb testing.TB) func() {
			a, next := serve(tb, costStore(tb)), costEvents(size)
			return func() {
				if _, err := a.AppendEvents(tb.Context(), &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{next()}}); err != nil {
					tb.Fatal(err)
				}
			}
		}}
	}
	streamed := func(size int) costtest.Operation {
		return costtest.Operation{Name: fmt.Sprintf("append %d bytes to the disk in a stream", size), Counted: 400, Start: func(tb testing.TB) func() {
			a, next := serve(tb, costStore(tb)), costEvents(size)
			stream, err := a.AppendEventStream(tb.Context())
			if err != nil {
				tb.Fatal(err)
			}
			return func() {
				err := stream.Send(&contextdv1.AppendEventStreamRequest{Append: &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{next()}}})
				if err == nil {
					_, err = stream.Recv()
				}
				if err != nil {
					tb.Fatal(err)
				}
			}
		}}
	}
	costtest.Hold(t, costsFile,
		unary(1<<10), unary(16<<10), streamed(1<<10), streamed(16<<10),
	)
}
