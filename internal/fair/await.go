// Package fair shares out what there is little of among the clients of the daemon, so that
// none of them gets more by asking for more.
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

// Client is whom work is done for; "" is the daemon itself.
func Client(ctx context.Context) string {
	client, _ := ctx.Value(clientKey{}).(string)
	return client
}

// Await waits until let is closed, ctx ends or the time is over, and reports whether it was let.
// quit gives up the place; it reports false where it was let meanwhile. The error is that of ctx.
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
