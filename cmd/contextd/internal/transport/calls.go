package transport

import (
	"maps"
	"time"

	"golang.org/x/time/rate"

	"github.com/contextd/contextd/internal/fair"
)

// Calls bounds how many calls may run at once and begin in a second, for all clients and for each; a rate of 0 is
// unlimited.
type Calls struct {
	Max, MaxPerClient   uint64
	Rate, RatePerClient uint64
}

// Any client may take places of the common part. The other places are for clients that have at most fewParts of all, so
// that a few clients cannot take every place.
const (
	allParts    = 256
	commonParts = 192
	fewParts    = 1
)

// hasRoom reports whether a client may take one more place. used places are taken, own of them by this client.
func hasRoom(limit, used, own uint64) bool {
	return used < limit && (used < limit*commonParts/allParts || own < max(limit*fewParts/allParts, 1))
}

// calls count those of each client.
type calls struct {
	running uint64
	rate    *rate.Limiter
	clients map[string]*caller
}

type caller struct {
	running uint64
	rate    *rate.Limiter
}

// begin counts a call of a client, or refuses it.
func (c *calls) begin(client string, o Calls, now time.Time) error {
	own := c.clients[client]
	if own == nil {
		own = &caller{rate: limiter(o.RatePerClient)}
	}
	if c.clients == nil {
		c.clients, c.rate = map[string]*caller{}, limiter(o.Rate)
	}
	refusal := func(setting string, limit uint64, after time.Duration) error {
		return &fair.BusyError{Setting: setting, Limit: limit, RetryAfter: after}
	}
	switch {
	case own.running >= o.MaxPerClient:
		return refusal("max_client_calls", o.MaxPerClient, fair.RetryAfter)
	case !hasRoom(o.Max, c.running, own.running):
		return refusal("max_calls", o.Max, fair.RetryAfter)
	}
	if after := due(own.rate, now); after > 0 {
		return refusal("max_client_call_rate", o.RatePerClient, after)
	}
	if after := due(c.rate, now); after > 0 {
		return refusal("max_call_rate", o.Rate, after)
	}
	if len(c.clients) > int(2*o.Max) {
		maps.DeleteFunc(c.clients, func(_ string, other *caller) bool { return other.forgettable(now) })
	}
	c.clients[client] = own
	own.running++
	c.running++
	return nil
}

func (c *calls) end(client string, now time.Time) {
	c.running--
	own := c.clients[client]
	if own.running--; own.forgettable(now) {
		delete(c.clients, client)
	}
}

// forgettable reports whether a client has no calls and no rate limit that would delay its next one.
func (c *caller) forgettable(now time.Time) bool {
	return c.running == 0 && (c.rate == nil || c.rate.TokensAt(now) >= float64(c.rate.Burst()))
}

// limiter is a rate limit whose burst is one second's worth of calls.
func limiter(perSecond uint64) *rate.Limiter {
	if perSecond == 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(perSecond), int(perSecond))
}

// due returns how long the next call must wait. If it need not wait, the call is counted.
func due(l *rate.Limiter, now time.Time) time.Duration {
	if l == nil {
		return 0
	}
	next := l.ReserveN(now, 1)
	after := next.DelayFrom(now)
	if after > 0 {
		next.CancelAt(now)
	}
	return after
}
