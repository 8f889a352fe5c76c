package memory

import (
	"context"
	"sync"
)

type requestKey struct{}

// Request holds the part of a budget that a call's newest request takes, and parts for
// its answer.
type Request struct {
	mu      sync.Mutex
	grant   *Grant
	answers []*Grant
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

// Add keeps a further part of the new request, with the first; one at the most for each request.
func (r *Request) Add(g *Grant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.grant == nil {
		r.grant = g
		return
	}
	r.grant.more = g
}

// End gives everything back: the call is over.
func (r *Request) End() {
	r.Hold(nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.answers {
		g.Release()
	}
	r.answers = nil
}

// UntilSent keeps a part of a budget until the call's answer was sent. Outside of a call
// it is given back at once.
func UntilSent(ctx context.Context, g *Grant) {
	r, ok := ctx.Value(requestKey{}).(*Request)
	if !ok {
		g.Release()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers = append(r.answers, g)
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
