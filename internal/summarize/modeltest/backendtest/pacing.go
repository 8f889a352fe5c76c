package backendtest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/modelhttp"
	"github.com/contextd/contextd/internal/summarize/modeltest"
)

// recovery: an answer after failed attempts counts, and the failures are not reported.
func recovery(t *testing.T, api modeltest.API, open Open) {
	for _, behaviour := range []modeltest.Behaviour{
		modeltest.Down, modeltest.Failing, modeltest.Overloaded, modeltest.RateLimited, modeltest.HTML, modeltest.Truncated,
	} {
		t.Run(string(behaviour), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, b := serve(t, api, open, behaviour, nil)
				time.AfterFunc(100*time.Millisecond, func() { s.Switch(modeltest.OK) })
				out, err := b.Summarize(t.Context(), ask)
				if err != nil || !summary(out.Text) {
					t.Errorf("got %+v, %v", out, err)
				}
			})
		})
	}
}

// rate: requests of all callers are spaced evenly, retries included.
func rate(t *testing.T, api modeltest.API, open Open) {
	synctest.Test(t, func(t *testing.T) {
		s, b := serve(t, api, open, modeltest.OK, func(o *modelhttp.Options) { o.RequestsPerMinute = 30 })
		begin := time.Now()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := b.Summarize(t.Context(), ask); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(begin); took.Round(time.Millisecond) != 18*time.Second {
			t.Errorf("10 requests at 30 a minute took %v", took)
		}

		s.Switch(modeltest.Failing)
		begin = time.Now()
		if _, err := b.Summarize(t.Context(), ask); err == nil {
			t.Error("no error")
		}
		if took := time.Since(begin); took.Round(time.Millisecond) < 3*2*time.Second {
			t.Errorf("three attempts took %v", took)
		}

		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		asked := len(s.Requests())
		_, err := b.Summarize(ctx, ask)
		if paced := (*modelhttp.PacedError)(nil); !errors.As(err, &paced) || errors.Is(err, summarize.ErrPermanent) {
			t.Errorf("got %v", err)
		}
		if len(s.Requests()) != asked || ctx.Err() != nil {
			t.Error("did not say at once that there is no turn before the deadline")
		}
	})
}

// cancel: a call whose context ends returns at once, wherever its request is.
func cancel(t *testing.T, api modeltest.API, open Open) {
	for _, behaviour := range []modeltest.Behaviour{modeltest.Hang, modeltest.Slow, modeltest.RateLimited, modeltest.Down} {
		t.Run(string(behaviour), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, b := serve(t, api, open, behaviour, nil, modeltest.RetryAfter("60"))
				ctx, stop := context.WithCancel(t.Context())
				time.AfterFunc(100*time.Millisecond, stop)
				begin := time.Now()
				_, err := b.Summarize(ctx, ask)
				if took := time.Since(begin); took != 100*time.Millisecond {
					t.Errorf("returned after %v", took)
				}
				if !errors.Is(err, context.Canceled) || errors.Is(err, summarize.ErrPermanent) {
					t.Errorf("got %v", err)
				}
				synctest.Wait()
				if n := s.InFlight(); n != 0 {
					t.Errorf("%d requests still run", n)
				}
			})
		})
	}
	t.Run("waiting for a turn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, b := serve(t, api, open, modeltest.OK, func(o *modelhttp.Options) { o.RequestsPerMinute = 1 })
			if _, err := b.Summarize(t.Context(), ask); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, stop)
			begin := time.Now()
			if _, err := b.Summarize(ctx, ask); !errors.Is(err, context.Canceled) || time.Since(begin) != time.Second {
				t.Errorf("got %v after %v", err, time.Since(begin))
			}
		})
	})
}

// deadline: no attempt is waited for that would begin after the deadline. The error is that of the last attempt. A
// Retry-After of hours is not waited for either.
func deadline(t *testing.T, api modeltest.API, open Open) {
	for name, c := range map[string]struct {
		retryAfter string
		timeout    time.Duration
	}{
		"before the next attempt": {"60", 30 * time.Second},
		"asked for hours":         {"7200", 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, b := serve(t, api, open, modeltest.RateLimited, nil, modeltest.RetryAfter(c.retryAfter))
				ctx, stop := context.WithTimeout(t.Context(), c.timeout)
				defer stop()
				begin := time.Now()
				_, err := b.Summarize(ctx, ask)
				status := (*modelhttp.StatusError)(nil)
				if !errors.As(err, &status) || status.Status != 429 || status.RetryAfter == 0 {
					t.Errorf("got %v", err)
				}
				if time.Since(begin) != 0 || len(s.Requests()) != 1 {
					t.Errorf("asked %d times in %v", len(s.Requests()), time.Since(begin))
				}
			})
		})
	}
}
