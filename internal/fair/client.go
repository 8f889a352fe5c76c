// Package fair shares out what there is little of among the clients of the daemon, so that
// none of them gets more by asking for more.
package fair

import "context"

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
