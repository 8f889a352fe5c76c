package transport

import (
	"log/slog"
	"strings"
	"time"

	middleware "github.com/grpc-ecosystem/go-grpc-middleware/v2"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
)

// callLogger writes one line for each call, at its end; for calls that fail in the same way, it limits them. Unlike the
// middleware's own interceptor it collects the fields of a call only if it writes a line.
type callLogger struct {
	logger *slog.Logger
	// onlyFaults logs only calls that failed because of the daemon.
	onlyFaults bool
	failures   *failures
}

// stream logs a call, with the fields that handlers and interceptors added.
func (l callLogger) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	began := time.Now()
	ctx := logging.InjectFields(ss.Context(), nil)
	err := handler(srv, &middleware.WrappedServerStream{ServerStream: ss, WrappedContext: ctx})
	code := status.Code(err)
	level := levelOf(err)
	if l.onlyFaults && level < slog.LevelError || !l.logger.Enabled(ctx, level) {
		return err
	}
	muted := 0
	if level >= slog.LevelWarn && !l.logger.Enabled(ctx, slog.LevelDebug) {
		var ok bool
		if ok, muted = l.failures.take(failureKind{info.FullMethod, code}, time.Now()); !ok {
			return err
		}
	}
	service, method, _ := strings.Cut(strings.TrimPrefix(info.FullMethod, "/"), "/")
	fields := []any{"grpc.service", service, "grpc.method", method}
	if p, ok := peer.FromContext(ctx); ok {
		fields = append(fields, "peer.address", p.Addr.String())
	}
	fields = append(fields, "grpc.start_time", began.Format(time.RFC3339))
	if due, ok := ctx.Deadline(); ok {
		fields = append(fields, "grpc.request.deadline", due.Format(time.RFC3339))
	}
	fields = append(append(fields, logging.ExtractFields(ctx)...), "grpc.code", code.String())
	if err != nil {
		fields = append(fields, "grpc.error", err.Error())
	}
	fields = append(fields, "grpc.duration", time.Since(began))
	if muted > 0 {
		fields = append(fields, "not_logged_since_last", muted)
	}
	if level >= slog.LevelWarn {
		l.logger.Log(ctx, level, "call failed", fields...)
	} else {
		l.logger.Log(ctx, level, "call ended", fields...)
	}
	return err
}

func levelOf(err error) slog.Level {
	switch status.Code(err) {
	case codes.OK, codes.Canceled, codes.NotFound: // a runtime asks for a session before it makes it
		return slog.LevelDebug
	case codes.Unknown, codes.Internal, codes.DataLoss:
		return slog.LevelError
	case codes.Unavailable:
		// A stop ends every call that waits; that is not an error of these calls.
		if reason, _ := apierr.Reason(status.Convert(err)); reason == apierr.ReasonDraining {
			return slog.LevelDebug
		}
	}
	// A mistake of the client, or a store that failed; the daemon logs the latter once, as an error.
	return slog.LevelWarn
}
