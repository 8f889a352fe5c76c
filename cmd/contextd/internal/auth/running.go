package auth

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// running has the unfinished calls of callers whose admission may end.
type running struct {
	mu  sync.Mutex
	all map[*call]struct{}
}

// call is an unfinished call. Its context has the credentials that the caller sent.
type call struct {
	ctx    context.Context
	tenant string
	end    context.CancelCauseFunc
}

func (r *running) add(c *call) (done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[c] = struct{}{}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.all, c)
	}
}

func (r *running) list() (all []*call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.all {
		all = append(all, c)
	}
	return all
}

// recheck authenticates running calls again. It ends those that are no longer admitted, or are of another
// tenant now.
func (a *Authenticator) recheck(ctx context.Context) {
	ended := map[string]int{}
	for _, c := range a.running.list() {
		who, err := a.identify(c.ctx)
		if err == nil && who.Tenant != c.tenant {
			err = &UnauthenticatedError{"the caller is of another tenant since the call began"}
		}
		if err != nil {
			c.end(err)
			ended[Of(c.ctx).Name]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ended)) {
		a.logger.InfoContext(ctx, "calls were ended whose caller is not let in any more", "caller", name, "calls", ended[name])
	}
}
