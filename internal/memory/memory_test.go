package memory_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/contextd/contextd/internal/fair"
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
	b := memory.NewBudget("some_memory", 1024, time.Nanosecond)
	of := func(client string) context.Context { return fair.WithClient(t.Context(), client) }
	large, err := b.Take(of("a"), 5000)
	if err != nil || b.Used() != 640 {
		t.Fatalf("what is larger than the largest piece has %d: %v", b.Used(), err)
	}
	var busy *fair.BusyError
	if _, err := b.Take(of("b"), 150); !errors.As(err, &busy) || busy.Setting != "some_memory" || busy.Limit != 1024 || busy.RetryAfter <= 0 {
		t.Errorf("beyond what is for anybody: %v", err)
	}
	other, err := b.Take(of("b"), 128)
	if err != nil || b.Used() != 768 || b.Refused() != 1 {
		t.Fatalf("another client: %v; %d used, %d refused", err, b.Used(), b.Refused())
	}
	third, err := b.Take(of("c"), 4)
	if err != nil {
		t.Errorf("a client that has nothing: %v", err)
	}
	if _, err := b.Take(of("c"), 1); err == nil {
		t.Error("and again")
	}
	var others []*memory.Grant
	for i := range 63 {
		g, err := b.Take(of(fmt.Sprint(i)), 4)
		if err != nil {
			t.Errorf("others that have nothing: %v", err)
		}
		others = append(others, g)
	}
	if _, err := b.Take(of("d"), 4); err == nil || b.Used() != 1024 {
		t.Errorf("where nothing is left: %v; %d used", err, b.Used())
	}
	for _, g := range others {
		g.Release()
	}
	large.Keep(10)
	large.Keep(50) // what was given back cannot be kept
	if b.Used() != 10+128+4 {
		t.Errorf("%d used", b.Used())
	}
	for _, g := range []*memory.Grant{large, other, third, third, nil} {
		g.Release()
	}
	if b.Used() != 0 {
		t.Errorf("%d used after all", b.Used())
	}
	full := []*memory.Grant{take(t, b, 640), take(t, b, 128)}
	if third, err = b.Take(of("c"), 4); err != nil {
		t.Errorf("a client that gave back what it had: %v", err)
	}
	for _, g := range append(full, third) {
		g.Release()
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	held := take(t, b, 600)
	if _, err := b.Take(canceled, 600); !errors.Is(err, context.Canceled) {
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

// TestSomethingIsLeft has many clients take all that they get: another one still gets a
// part at once, and of those that wait it is the first to get more.
func TestSomethingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total, clients = 64 << 20, 64
		b := memory.NewBudget("x", total, time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var held []*memory.Grant
		var mu sync.Mutex
		for i := range clients {
			all.Go(func() {
				for {
					g, err := b.Take(fair.WithClient(ctx, fmt.Sprint(i)), 32<<10)
					if err != nil {
						return
					}
					mu.Lock()
					held = append(held, g)
					mu.Unlock()
				}
			})
		}
		synctest.Wait() // they all wait
		behaved := fair.WithClient(ctx, "behaved")
		began := time.Now()
		if _, err := b.Take(behaved, total/256); err != nil || time.Since(began) > 0 {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		more := make(chan error)
		go func() {
			_, err := b.Take(behaved, 64<<10)
			more <- err
		}()
		synctest.Wait()
		for _, g := range held[:1024] {
			g.Release()
		}
		if err := <-more; err != nil || time.Since(began) > 0 {
			t.Errorf("once there is room, after %s: %v", time.Since(began), err)
		}
		cancel()
		all.Wait()
	})
}

// TestSmallPiecesWaitTheirTurn has a client wait for a large piece while another, which holds more, asks for small ones
// before and after it: they do not pass the large one, unless that gives up.
func TestSmallPiecesWaitTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.NewBudget("x", 1024, time.Minute)
		greedy, patient := fair.WithClient(t.Context(), "greedy"), fair.WithClient(t.Context(), "patient")
		var pieces []*memory.Grant
		for range 24 {
			g, err := b.Take(greedy, 32)
			if err != nil {
				t.Fatal(err)
			}
			pieces = append(pieces, g)
		}
		release := func() {
			pieces[0].Release()
			pieces = pieces[1:]
			synctest.Wait()
		}
		got := func(ctx context.Context, n uint64) chan error {
			done := make(chan error, 1)
			go func() {
				_, err := b.Take(ctx, n)
				done <- err
			}()
			synctest.Wait()
			return done
		}
		most, large := got(greedy, 40), got(patient, 96)
		release()
		small := got(greedy, 32) // for which there is room
		release()
		if len(most)+len(small)+len(large) > 0 {
			t.Fatalf("where there is no room for the large one: %d, %d and %d granted", len(most), len(small), len(large))
		}
		release()
		if len(large) != 1 || len(most)+len(small) > 0 {
			t.Fatalf("where there is room for the large one: %d, %d and %d granted", len(most), len(small), len(large))
		}
		ctx, leave := context.WithCancel(patient)
		left := got(ctx, 96)
		release()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up: %v", err)
		}
		if err := <-small; err != nil || len(most) > 0 {
			t.Errorf("after the other gave up: %v; %d of the larger one granted", err, len(most))
		}
		release()
		release()
		if err := <-most; err != nil {
			t.Error(err)
		}
	})
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
	b := memory.NewBudget("x", 1000, time.Nanosecond)
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
	own.Release()
	for _, first := range []*memory.Grant{take(t, b, 30), nil} {
		r.Hold(first)
		r.Add(take(t, b, 10))
		if own := memory.TakeRequest(ctx); own == nil {
			t.Error("a second grant is lost")
		} else {
			own.Release()
		}
		if b.Used() != 0 {
			t.Errorf("%d used after a request with two grants", b.Used())
		}
	}
	r.Hold(take(t, b, 20))
	memory.UntilSent(ctx, take(t, b, 5))
	memory.UntilSent(ctx, take(t, b, 6))
	memory.UntilSent(t.Context(), take(t, b, 7)) // outside of a call
	if b.Used() != 31 {
		t.Errorf("%d used by the request and its answer", b.Used())
	}
	r.End()
	if b.Used() != 0 {
		t.Errorf("%d used after the call", b.Used())
	}
}
