package modelhttp

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		value, date string
		want        time.Duration
	}{
		{"", "", 0},
		{"7", "", 7 * time.Second},
		{" 0.5 ", "", 500 * time.Millisecond},
		{"0", "", 0},
		{"-3", "", 0},
		{"NaN", "", 0},
		{"+Inf", "", 24 * time.Hour},
		{"1e300", "", 24 * time.Hour},
		{"soon", "", 0},
		{"Fri, 01 May 2026 12:00:30 GMT", "", 30 * time.Second},
		{"Fri, 01 May 2026 11:00:00 GMT", "", 0},
		// The server's clock is an hour slow; so is its date.
		{"Fri, 01 May 2026 11:00:30 GMT", "Fri, 01 May 2026 11:00:00 GMT", 30 * time.Second},
		{"Fri, 31 Dec 9999 23:59:59 GMT", "", 24 * time.Hour},
		{"Friday, 01-May-26 12:00:30 GMT", "", 30 * time.Second},
	} {
		h := http.Header{}
		h.Set("Retry-After", c.value)
		h.Set("Date", c.date)
		if got := retryAfter(h, now); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Waits double up to a limit, differ from each other by chance, and are never
// shorter than what was asked.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		seen := map[time.Duration]bool{}
		for range 20 {
			p := newPace(ctx)
			p.Reset()
			middle := firstWait
			for range 10 {
				wait := p.NextBackOff()
				if wait < middle/2 || wait > middle*3/2 {
					t.Fatalf("waits %v about %v", wait, middle)
				}
				seen[wait] = true
				middle = min(middle*2, maxWait)
			}
			p.asked = maxRetryAfter
			if wait := p.NextBackOff(); wait != maxRetryAfter {
				t.Errorf("waits %v", wait)
			}
			p.asked++
			if wait := p.NextBackOff(); wait != backoff.Stop {
				t.Errorf("waits %v", wait)
			}
		}
		if len(seen) < 50 {
			t.Errorf("%d different waits", len(seen))
		}
	})
}

func TestPassing(t *testing.T) {
	for status := 300; status < 600; status++ {
		want := status >= 500 || status == 408 || status == 409 || status == 425 || status == 429
		if passing(status) != want {
			t.Errorf("%d: %v", status, !want)
		}
	}
}
