package server_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/cmd/contextd/internal/server"
	"github.com/contextd/contextd/internal/fair"
	"github.com/contextd/contextd/internal/log/memlog"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestSearchesTakeTurns checks that a list that goes through all sessions waits for the processor, and one that the
// store keeps in order does not.
func TestSearchesTakeTurns(t *testing.T) {
	turns := fair.NewTurns(fair.TurnsOptions{Limit: 1, PerClient: 2, Setting: "max_assemblies", Wait: time.Nanosecond, Clock: time.Now})
	a := serve(t, memlog.New(), func(o *server.Options) { o.Processor = turns })
	for range 2 { // the second because turns are short until they have lasted
		done, err := turns.Take(fair.WithClient(t.Context(), "other"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(done)
	}
	for want, requests := range map[codes.Code][]*contextdv1.ListSessionsRequest{
		codes.OK:                {{}, {Labels: map[string]string{"k": "v"}}},
		codes.ResourceExhausted: {{Query: "x"}, {Order: contextdv1.SessionOrder_SESSION_ORDER_TURNS}},
	} {
		for _, req := range requests {
			if _, err := a.ListSessions(t.Context(), req); status.Code(err) != want {
				t.Errorf("%v: %v, want %s", req, err, want)
			}
		}
	}
}
