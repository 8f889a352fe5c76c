package transport

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"strings"
	"time"

	"buf.build/go/protovalidate"
	middleware "github.com/grpc-ecosystem/go-grpc-middleware/v2"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/stats"
)

// Options are the limits and callbacks of a server.
type Options struct {
	Logger *slog.Logger
	// OnlyFaults logs only calls that failed because of the daemon.
	OnlyFaults bool
	// MaxMessageBytes is the size of the largest request that is read. gRPC itself refuses a larger one, without
	// details.
	MaxMessageBytes uint64
	// MaxStreams is how many calls one connection may have open at once.
	MaxStreams uint32
	// Unavailable is called when a call finds that the store has failed. It may be nil and must not block.
	Unavailable func()
	// Failed is called for each call that ends in an error: with the reason, and if a limit was reached with its
	// setting. The context has the caller, if it is known by then. Failed may be nil and must not block.
	Failed func(ctx context.Context, reason, setting string)
	// Telemetry, if set, observes every call.
	Telemetry stats.Handler
	Bounds    Bounds
	// Authenticate, if set, adds the caller to the context of a call, or refuses the call before any message is
	// received. If the context that it returns ends with a cause, the call ends with that cause. done is called at the
	// call's end.
	Authenticate func(context.Context) (_ context.Context, done func(), err error)
	// Implementation, if set, returns the implementation that serves a call, or nil for the registered one.
	Implementation func(ctx context.Context, service string) (any, error)
	// ConnectionIdle is how long a client may stay connected without a call.
	ConnectionIdle time.Duration
	// ConnectionAge, if set, is after about which time a client is asked to connect again. Open calls go on.
	ConnectionAge time.Duration
}

// Timeouts of connections. Clients of a sidecar run as long as it does, and are often idle.
const (
	pingAfter     = 30 * time.Second
	pingTimeout   = 10 * time.Second
	minClientPing = 5 * time.Second
	// setupTimeout is how long a client may take to begin HTTP/2.
	setupTimeout = 10 * time.Second
)

// streamWorkers is how many goroutines are kept to serve calls; further calls get new ones. A new goroutine has to
// grow its stack in every call, which costs a tenth of an append.
const streamWorkers = 64

// The flow control windows are fixed: on loopback there is no bandwidth to measure, and gRPC's pings for that would
// cost every small call a round trip. The window of a call is the smallest possible, since a client may send that much
// before the call is checked.
const (
	streamWindow = 64 << 10
	connWindow   = 8 << 20
)

// frameSlack is how much larger than its events' content a message may be.
const frameSlack = 4 << 20

// decodedSlack is the least memory, beyond its bytes, that a decoded request may take.
const decodedSlack = 16 << 20

// build returns the options of a gRPC server and the chain of interceptors. Logging is first, so that it sees the status
// that the client gets. Bounds apply before a message is read. Recovery is last, so that all others see a panic as an
// error.
func (o Options) build() ([]grpc.ServerOption, []grpc.StreamServerInterceptor, *bounds, error) {
	validator, err := protovalidate.New()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("set up request validation: %w", err)
	}
	bound := &bounds{
		Bounds: o.Bounds, running: map[*boundedStream]struct{}{}, codec: newCodec(), telemetry: o.Telemetry,
		maxContent: o.MaxMessageBytes, maxMessage: min(o.MaxMessageBytes+frameSlack, math.MaxInt32),
		maxDecoded: o.MaxMessageBytes + decodedSlack,
	}
	chain := []grpc.StreamServerInterceptor{
		callLogger{o.Logger, o.OnlyFaults, newFailures()}.stream,
	}
	if o.Authenticate != nil {
		chain = append(chain, o.authenticate)
	}
	chain = append(chain,
		o.converter().stream,
		bound.intercept,
		validation{validator, o.Bounds.Processor}.stream,
		recovery.StreamServerInterceptor(recovery.WithRecoveryHandlerContext(recovered(debug.Stack))),
	)
	if o.Implementation != nil {
		chain = append(chain, o.implement)
	}
	opts := []grpc.ServerOption{
		grpc.Creds(newByListener()),
		grpc.ForceServerCodecV2(bound.codec),
		grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.MaxConcurrentStreams(o.MaxStreams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.ConnectionTimeout(setupTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout, MaxConnectionIdle: o.ConnectionIdle, MaxConnectionAge: o.ConnectionAge}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minClientPing, PermitWithoutStream: true}),
	}
	if o.Telemetry != nil {
		opts = append(opts, grpc.StatsHandler(o.Telemetry))
	}
	return opts, chain, bound, nil
}

func (o Options) converter() errorConverter { return errorConverter{o.Unavailable, o.Failed} }

// authenticate adds the caller to a call's context, or refuses the call.
func (o Options) authenticate(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, done, err := o.Authenticate(ss.Context())
	if err != nil {
		return o.converter().convert(ss.Context(), err)
	}
	defer done()
	return handler(srv, &middleware.WrappedServerStream{ServerStream: ss, WrappedContext: ctx})
}

// implement serves a call with the implementation that Implementation chooses.
func (o Options) implement(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	service, _, _ := strings.Cut(strings.TrimPrefix(info.FullMethod, "/"), "/")
	own, err := o.Implementation(ss.Context(), service)
	if err != nil {
		return err
	}
	if own != nil {
		srv = own
	}
	return handler(srv, ss)
}

// maxHeaderBytes bounds the metadata of a call.
const maxHeaderBytes = 64 << 10
