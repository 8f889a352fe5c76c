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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/internal/fair"
	"github.com/contextd/contextd/internal/memory"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// Bounds limit the resources that all calls of the daemon may have together, over all connections.
type Bounds struct {
	// Calls bounds how many calls run; health checks are counted separately.
	Calls Calls
	// Client returns the name of a call's client. If it is nil or returns "", the client is the remote machine, or for
	// callers on this machine the connection.
	Client func(context.Context) string
	// Processor is for decompressing, decoding and checking large requests.
	Processor *fair.Turns
	// SmallRequests and LargeRequests are the memory for requests, from when their size is known until their call has
	// ended. Large requests have a budget of their own, so that they do not delay small ones.
	SmallRequests, LargeRequests *memory.Budget
	// DecodedRequests is the memory that decoded requests of many small values take beyond their bytes.
	DecodedRequests *memory.Budget
	// Answers is the memory for large answers until the client has received them.
	Answers *memory.Budget
	// ReceiveTimeout is how long a request may take to arrive once it has begun.
	ReceiveTimeout time.Duration
	// SendTimeout is how long a client may go without receiving any part of an answer.
	SendTimeout time.Duration
}

// largeMessage is the size, in bytes, from which a message is large.
const largeMessage = 64 << 10

// denseMessage is the size from which a message's memory after decoding is estimated.
const denseMessage = 4 << 10

// healthService is always served.
const healthService = "/grpc.health.v1.Health/"

// bounds enforces Bounds.
type bounds struct {
	Bounds
	codec     codec
	telemetry stats.Handler // nil if nothing is observed
	// maxMessage is the largest request, of which maxContent may be events. Decoding may take maxDecoded more memory.
	maxMessage, maxContent, maxDecoded uint64

	mu      sync.Mutex
	running map[*boundedStream]struct{}
	calls   calls
	checks  calls // of the health
}

// healthChecks is how many health checks may run at once, including those that watch.
var healthChecks = Calls{Max: 1024, MaxPerClient: 512}

var errManyChecks = status.Error(codes.ResourceExhausted, "too many health checks run at once")

// uploads reports whether a call's messages are parts of one request. Each part must arrive soon after the one before,
// because the reader waits for it and keeps what it has.
func uploads(info *grpc.StreamServerInfo) bool {
	return info.IsClientStream && !info.IsServerStream || info.FullMethod == contextdv1.TranscriptService_ConvertTranscript_FullMethodName
}

func (b *bounds) intercept(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	s := &boundedStream{
		ServerStream: ss, bounds: b, conn: connOf(ss.Context()), ctx: ss.Context(),
		method: info.FullMethod, began: time.Now(),
		streams: info.IsClientStream, upload: uploads(info), exempt: strings.HasPrefix(info.FullMethod, healthService),
	}
	if err := b.begin(s); err != nil {
		return err
	}
	defer b.end(s)
	s.raw, _ = grpc.ServerTransportStreamFromContext(ss.Context()).(rawStream)
	s.ctx = memory.WithRequest(fair.WithClient(ss.Context(), s.client), &s.request)
	defer context.AfterFunc(s.ctx, s.endByCause)()
	err := handler(srv, s)
	if errors.Is(err, context.Canceled) && s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return err
}

// begin counts a call, or refuses it.
func (b *bounds) begin(s *boundedStream) error {
	if b.Client != nil {
		s.client = b.Client(s.Context())
	}
	if s.conn != nil {
		s.client = cmp.Or(s.client, s.conn.caller)
		if !s.exempt && !s.conn.admitted.Load() {
			if beyond := s.conn.list.admit(s.conn); beyond != nil {
				return beyond
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.exempt {
		if b.checks.begin(s.client, healthChecks, s.began) != nil {
			return errManyChecks
		}
	} else if err := b.calls.begin(s.client, b.Calls, s.began); err != nil {
		return err
	}
	b.running[s] = struct{}{}
	if s.conn != nil {
		s.conn.begin()
	}
	return nil
}

// end releases what a call was given.
func (b *bounds) end(s *boundedStream) {
	s.request.End()
	b.mu.Lock()
	delete(b.running, s)
	if s.exempt {
		b.checks.end(s.client, time.Now())
	} else {
		b.calls.end(s.client, time.Now())
	}
	b.mu.Unlock()
	if s.conn != nil {
		s.conn.end()
	}
}

// names lists the running calls with their ages, the oldest first.
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
