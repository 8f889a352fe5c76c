package memory_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/contextd/contextd/internal/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func take(t *testing.T, b *memory.Budget, n uint64) *memory.Grant {
	t.Helper()
	g, err := b.Take(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestBudget(t *testing.T) {
	b := memory.NewBudget("some_memory", 100, time.Nanosecond)
	first, second := take(t, b, 60), take(t, b, 40)
	var busy *memory.BusyError
	if _, err := b.Take(t.Context(), 1); !errors.As(err, &busy) || busy.Setting != "some_memory" || busy.Limit != 100 || busy.RetryAfter <= 0 {
		t.Errorf("beyond the budget: %v", err)
	}
	if b.Used() != 100 || b.Refused() != 1 {
		t.Errorf("%d used, %d refused", b.Used(), b.Refused())
	}
	first.Keep(10)
	first.Keep(50) // what was given back cannot be kept
	third := take(t, b, 50)
	for _, g := range []*memory.Grant{first, second, third, third, nil} {
		g.Release()
	}
	if b.Used() != 0 {
		t.Errorf("%d used after all", b.Used())
	}
	whole := take(t, b, 1000)
	if b.Used() != 100 {
		t.Errorf("what is larger than the budget has %d", b.Used())
	}
	whole.Release()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	held := take(t, b, 100)
	if _, err := b.Take(canceled, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("of a client that disconnected: %v", err)
	}
	if g, err := b.Take(memory.Exempt(t.Context()), 5); g != nil || err != nil {
		t.Errorf("within what was taken: %v, %v", g, err)
	}
	held.Release()
	var none *memory.Budget
	if g, err := none.Take(t.Context(), 5); g != nil || err != nil {
		t.Errorf("without a budget: %v, %v", g, err)
	}
}

// TestBudgetHolds has many take and give back at once, and never more than there is.
func TestBudgetHolds(t *testing.T) {
	const total = 1000
	b := memory.NewBudget("x", total, time.Minute)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			for j := range 200 {
				g, err := b.Take(t.Context(), uint64(i*j%700))
				if err != nil {
					t.Error(err)
					return
				}
				if used := b.Used(); used > total {
					t.Errorf("%d of %d are used", used, total)
				}
				g.Keep(uint64(j))
				g.Release()
			}
		})
	}
	all.Wait()
	if b.Used() != 0 {
		t.Errorf("%d used after all", b.Used())
	}
}

func TestRequest(t *testing.T) {
	b := memory.NewBudget("x", 100, time.Nanosecond)
	var r memory.Request
	ctx := memory.WithRequest(t.Context(), &r)
	r.Hold(take(t, b, 30))
	r.Hold(take(t, b, 20)) // the next request takes the place of the first
	if b.Used() != 20 {
		t.Errorf("%d used by the second request", b.Used())
	}
	own := memory.TakeRequest(ctx)
	r.Hold(nil)
	if b.Used() != 20 || memory.TakeRequest(ctx) != nil || memory.TakeRequest(t.Context()) != nil {
		t.Error("what was handed over is not the caller's alone")
	}
	memory.UntilSent(ctx, take(t, b, 5))
	memory.UntilSent(t.Context(), take(t, b, 7)) // outside of a call
	own.Release()
	if b.Used() != 5 {
		t.Errorf("%d used by the answer", b.Used())
	}
	r.End()
	if b.Used() != 0 {
		t.Errorf("%d used after the call", b.Used())
	}
}
