package modelhttp

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	firstWait = time.Second
	maxWait   = 30 * time.Second
	// maxRetryAfter is the longest wait that an endpoint may ask for. If it asks for more, the request fails, and a
	// later one tries again.
	maxRetryAfter = 2 * time.Minute
)

// pace is the backoff between the attempts of one request: exponential, with jitter, and at least as long as the
// endpoint asked. It stops if the next attempt would be too late.
type pace struct {
	exponential *backoff.ExponentialBackOff
	ctx         context.Context
	// asked is the wait that the last answer asked for.
	asked time.Duration
}

func newPace(ctx context.Context) *pace {
	return &pace{ctx: ctx, exponential: &backoff.ExponentialBackOff{
		InitialInterval:     firstWait,
		RandomizationFactor: 0.5,
		Multiplier:          2,
		MaxInterval:         maxWait,
	}}
}

// NextBackOff returns the wait before the next attempt.
func (p *pace) NextBackOff() time.Duration {
	wait := max(p.exponential.NextBackOff(), p.asked)
	if p.asked > maxRetryAfter {
		return backoff.Stop
	}
	if deadline, ok := p.ctx.Deadline(); ok && time.Until(deadline) <= wait {
		return backoff.Stop
	}
	return wait
}

// Reset begins again.
func (p *pace) Reset() {
	p.exponential.Reset()
	p.asked = 0
}

// retryAfter parses the Retry-After header: seconds, or a date, which is compared with the answer's own Date if it
// has one.
func retryAfter(h http.Header, now time.Time) time.Duration {
	const most = 24 * time.Hour
	value := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		if !(seconds > 0) {
			return 0
		}
		return time.Duration(min(seconds, most.Seconds()) * float64(time.Second))
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(0, until.Sub(now)), most)
}
