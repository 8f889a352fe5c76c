package transport

import (
	"context"
	"fmt"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
)

// panicError is a panic of a handler.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.value, e.stack) }

// recovered turns a panic into an error; converting that error hides the panic's value from the client.
func recovered(stack func() []byte) recovery.RecoveryHandlerFuncContext {
	return func(_ context.Context, p any) error { return &panicError{p, stack()} }
}

// errorConverter converts handlers' errors to statuses, and logs the causes that clients are not shown.
type errorConverter struct {
	// unavailable is called when the store refuses work; may be nil.
	unavailable func()
	// failed is called for every error; may be nil.
	failed func(ctx context.Context, reason, setting string)
}

func (c errorConverter) convert(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	st, hidden := apierr.Convert(err)
	if hidden {
		// The cause is a field of the call's line in the log.
		logging.AddFields(ctx, logging.Fields{"cause", err.Error()})
		if st.Code() == codes.Unavailable && c.unavailable != nil {
			c.unavailable()
		}
	}
	if c.failed != nil {
		reason, setting := apierr.Reason(st)
		c.failed(ctx, reason, setting)
	}
	return st.Err()
}

func (c errorConverter) stream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return c.convert(ss.Context(), handler(srv, ss))
}
