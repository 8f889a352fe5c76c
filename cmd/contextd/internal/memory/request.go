package memory

import (
	"context"
	"sync"
)

type requestKey struct{}

// Request holds the part of a budget that a call's newest request takes.
type Request struct {
	mu    sync.Mutex
	grant *Grant
}

// WithRequest returns a context whose call keeps its request's part in r.
func WithRequest(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// Hold keeps the part of a new request, and gives back that of the one before.
func (r *Request) Hold(g *Grant) {
	r.mu.Lock()
	old := r.grant
	r.grant = g
	r.mu.Unlock()
	old.Release()
}

// TakeRequest hands the part of the call's newest request over to the caller, who
// releases it: for requests that are worked on while the next is received. It is nil
// where there is none.
func TakeRequest(ctx context.Context) *Grant {
	r, ok := ctx.Value(requestKey{}).(*Request)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.grant
	r.grant = nil
	return g
}
