package transport_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/stats"

	"github.com/contextd/contextd/cmd/contextd/internal/transport"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// connections counts those that begin.
type connections struct{ begun atomic.Int64 }

func (*connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (*connections) HandleRPC(context.Context, stats.RPCStats) {}

func (*connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (c *connections) HandleConn(_ context.Context, s stats.ConnStats) {
	if _, ok := s.(*stats.ConnBegin); ok {
		c.begun.Add(1)
	}
}

// A client is asked to connect again from time to time, and none of its calls fails by that.
func TestConnectionsAge(t *testing.T) {
	seen := &connections{}
	client := serve(t, io.Discard, nil, func(o *transport.Options) { o.Telemetry, o.ConnectionAge = seen, 10*time.Millisecond })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for calls := 1; seen.begun.Load() < 4; calls++ {
		if _, err := client.GetSession(ctx, &contextdv1.GetSessionRequest{SessionId: "ok"}); err != nil {
			t.Fatalf("call %d over connection %d: %v", calls, seen.begun.Load(), err)
		}
	}
}
