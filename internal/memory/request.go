package memory

import (
	"context"
	"sync"
)

type requestKey struct{}

// Request holds the memory of a call's newest request, and of its answer.
type Request struct {
	mu      sync.Mutex
	grant   *Grant
	answers []*Grant
}

// WithRequest returns a context for a call whose memory r holds.
func WithRequest(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// Hold keeps the grant for a new request, and releases that of the request before.
func (r *Request) Hold(g *Grant) {
	r.mu.Lock()
	old := r.grant
	r.grant = g
	r.mu.Unlock()
	old.Release()
}

// Add keeps a second grant for the new request, with the first; it may be called once for each request.
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
}

// UntilSent keeps a grant until the call's answer is sent. Outside of a call it releases the grant at once.
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

// TakeRequest hands the grant of the call's newest request to the caller, who must release it: for requests that are
// processed while the next one is received. It returns nil if there is none.
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
