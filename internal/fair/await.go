// Package fair shares scarce resources out among the clients of the daemon, so that none gets more by asking for
// more.
package fair

import (
	"context"
	"errors"
	"time"
)

type clientKey struct{}

// WithClient returns a context of work for a client.
func WithClient(ctx context.Context, client string) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// Client is the client whose work the context is for; "" is the daemon itself.
func Client(ctx context.Context) string {
	client, _ := ctx.Value(clientKey{}).(string)
	return client
}

// Await waits for let, which the other side closes to grant what was asked for, and reports whether it was granted.
// If ctx ends or the time is over it calls quit, which gives up the place in the queue; quit reports false if let was
// closed meanwhile. The error is that of ctx.
func Await(ctx context.Context, let <-chan struct{}, wait time.Duration, quit func() bool) (bool, error) {
	select {
	case <-let:
		return true, nil
	default:
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case <-let:
	case <-ctx.Done():
	case <-late.C:
	}
	if !quit() {
		return true, nil
	}
	if err := ctx.Err(); err != nil {
		return false, errors.Join(err, context.Cause(ctx))
	}
	return false, nil
}
