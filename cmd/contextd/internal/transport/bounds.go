package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/contextd/contextd/internal/memory"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// Bounds say what the calls of the daemon may hold together. They are shared by all
// connections.
type Bounds struct {
	// MaxCalls is how many calls may run at once; health checks are not counted.
	MaxCalls uint64
	// SmallRequests and LargeRequests are for requests from the moment that their size
	// is known until their call has ended. Large ones have their own budget, so that they
	// do not delay others.
	SmallRequests, LargeRequests *memory.Budget
	// Answers is for large answers until the client has taken them.
	Answers *memory.Budget
	// ReceiveTimeout is how long a request may take to arrive once it has begun.
	ReceiveTimeout time.Duration
	// SendTimeout is how long a client may take no part of an answer.
	SendTimeout time.Duration
}

// largeMessage is where messages begin to be large.
const largeMessage = 64 << 10

// healthService is always served.
const healthService = "/grpc.health.v1.Health/"

// bounds holds calls to their bounds.
type bounds struct {
	Bounds
	codec     codec
	telemetry stats.Handler // nil if nothing is observed
	// maxMessage is the largest request, of which maxContent are events.
	maxMessage, maxContent uint64

	mu      sync.Mutex
	running map[*boundedStream]struct{}
	counted uint64 // of running, without health checks
}

// uploads reports whether the messages of a call are parts of one request, which are due one
// after the other: who stops sending holds up what reads them.
func uploads(info *grpc.StreamServerInfo) bool {
	return info.IsClientStream && !info.IsServerStream || info.FullMethod == contextdv1.TranscriptService_ConvertTranscript_FullMethodName
}

func (b *bounds) intercept(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	s := &boundedStream{
		ServerStream: ss, bounds: b, conn: connOf(ss.Context()),
		method: info.FullMethod, began: time.Now(),
		streams: info.IsClientStream, upload: uploads(info), exempt: strings.HasPrefix(info.FullMethod, healthService),
	}
	if err := b.begin(s); err != nil {
		return err
	}
	defer b.end(s)
	s.raw, _ = grpc.ServerTransportStreamFromContext(ss.Context()).(rawStream)
	s.ctx = memory.WithRequest(ss.Context(), &s.request)
	defer context.AfterFunc(s.ctx, s.endByCause)()
	err := handler(srv, s)
	if errors.Is(err, context.Canceled) && s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return err
}

// begin counts a call, or refuses it.
func (b *bounds) begin(s *boundedStream) error {
	if s.conn != nil {
		if s.conn.surplus && !s.exempt {
			return &memory.BusyError{Setting: "max_connections", Limit: s.conn.list.limit, RetryAfter: time.Second}
		}
		s.conn.begin()
	}
	b.mu.Lock()
	full := !s.exempt && b.counted >= b.MaxCalls
	if !full {
		b.running[s] = struct{}{}
		if !s.exempt {
			b.counted++
		}
	}
	b.mu.Unlock()
	if full {
		if s.conn != nil {
			s.conn.end()
		}
		return &memory.BusyError{Setting: "max_calls", Limit: b.MaxCalls, RetryAfter: time.Second}
	}
	return nil
}

// end gives back what a call holds.
func (b *bounds) end(s *boundedStream) {
	s.request.End()
	b.mu.Lock()
	delete(b.running, s)
	if !s.exempt {
		b.counted--
	}
	b.mu.Unlock()
	if s.conn != nil {
		s.conn.end()
	}
}

// names says which calls run, and since when, the oldest first.
func (b *bounds) names(now time.Time) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	oldest, calls := map[string]time.Time{}, map[string]int{}
	for s := range b.running {
		if calls[s.method]++; calls[s.method] == 1 || s.began.Before(oldest[s.method]) {
			oldest[s.method] = s.began
		}
	}
	methods := slices.SortedFunc(maps.Keys(calls), func(x, y string) int { return cmp.Or(oldest[x].Compare(oldest[y]), cmp.Compare(x, y)) })
	for i, m := range methods {
		methods[i] = fmt.Sprintf("%s (%d, since %s)", m, calls[m], now.Sub(oldest[m]).Round(time.Millisecond))
	}
	return methods
}
