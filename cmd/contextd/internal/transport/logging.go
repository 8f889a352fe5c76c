package transport

import (
	"context"
	"log/slog"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"google.golang.org/grpc/codes"
)

// callLogger writes one line per call: only its end is logged.
func callLogger(logger *slog.Logger, onlyFaults bool) (logging.Logger, []logging.Option) {
	write := logging.LoggerFunc(func(ctx context.Context, level logging.Level, _ string, fields ...any) {
		switch at := slog.Level(level); {
		case onlyFaults && at < slog.LevelError:
		case at >= slog.LevelWarn:
			logger.Log(ctx, at, "call failed", fields...)
		default:
			logger.Log(ctx, at, "call ended", fields...)
		}
	})
	return write, []logging.Option{
		logging.WithLogOnEvents(logging.FinishCall),
		logging.WithLevels(levelOf),
		logging.WithDurationField(logging.DurationToDurationField),
	}
}

func levelOf(code codes.Code) logging.Level {
	switch code {
	case codes.OK, codes.Canceled:
		return logging.LevelDebug
	case codes.Unknown, codes.Internal, codes.DataLoss:
		return logging.LevelError
	default:
		// What a client did wrong; of UNAVAILABLE, a stop, which is nothing wrong, or a store
		// that failed, which the daemon itself calls an error once.
		return logging.LevelWarn
	}
}
