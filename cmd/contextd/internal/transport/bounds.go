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

// Bounds say what the calls of the daemon may hold together. They are shared by all
// connections.
type Bounds struct {
	// Calls are how many may run; health checks are counted apart.
	Calls Calls
	// Client names who makes a call; where it does not know, it is the machine or, on this
	// one, the connection. It may be nil.
	Client func(context.Context) string
	// Processor is for decoding large requests.
	Processor *fair.Turns
	// SmallRequests and LargeRequests are for requests from the moment that their size
	// is known until their call has ended. Large ones have their own budget, so that they
	// do not delay others.
	SmallRequests, LargeRequests *memory.Budget
	// DecodedRequests is for what requests of many small values take beside their bytes.
	DecodedRequests *memory.Budget
	// Answers is for large answers until the client has taken them.
	Answers *memory.Budget
	// ReceiveTimeout is how long a request may take to arrive once it has begun.
	ReceiveTimeout time.Duration
	// SendTimeout is how long a client may take no part of an answer.
	SendTimeout time.Duration
}

// largeMessage is where messages begin to be large.
const largeMessage = 64 << 10

// denseMessage is where it is looked at what messages take once they are decoded.
const denseMessage = 4 << 10

// healthService is always served.
const healthService = "/grpc.health.v1.Health/"

// bounds holds calls to their bounds.
type bounds struct {
	Bounds
	codec     codec
	telemetry stats.Handler // nil if nothing is observed
	// maxMessage is the largest request, of which maxContent are events; decoded it may take
	// maxDecoded more.
	maxMessage, maxContent, maxDecoded uint64

	mu      sync.Mutex
	running map[*boundedStream]struct{}
	calls   calls
	checks  calls // of the health
}

// healthChecks are how many checks of the health may run at once, those that watch it included.
var healthChecks = Calls{Max: 1024, MaxPerClient: 512}

var errManyChecks = status.Error(codes.ResourceExhausted, "too many health checks run at once")

// uploads reports whether the messages of a call are parts of one request, which are due one
// after the other: who stops sending holds up what reads them.
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

// end gives back what a call holds.
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
