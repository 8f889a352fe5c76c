package transport

import (
	"context"
	"log/slog"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"google.golang.org/grpc/codes"
)

// callLogger writes one line per call. What a client did wrong is its own
// business and stays at the level of information.
func callLogger(logger *slog.Logger) (logging.Logger, []logging.Option) {
	write := logging.LoggerFunc(func(ctx context.Context, level logging.Level, _ string, fields ...any) {
		// The message is always the same: only the end of a call is logged.
		logger.Log(ctx, slog.Level(level), "call ended", fields...)
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
	case codes.Unavailable:
		// A stop, which is nothing wrong, or a store that failed, which the daemon itself
		// calls an error once.
		return logging.LevelWarn
	default:
		return logging.LevelInfo
	}
}
