package fair_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/contextd/contextd/internal/fair"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func turns(limit, perClient uint64) *fair.Turns {
	return fair.NewTurns(fair.TurnsOptions{
		Limit: limit, PerClient: perClient, Setting: "max_turns", ClientSetting: "max_client_turns", Wait: 10 * time.Second, Clock: time.Now,
	})
}

// TestABehavedClientHardlyWaits has many clients want turns of a second without end: one that
// needs little is let in at once, each time.
func TestABehavedClientHardlyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := turns(2, 2)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var refused atomic.Int64
		for i := range 64 {
			all.Go(func() {
				for ctx.Err() == nil {
					done, err := shared.Take(fair.WithClient(ctx, fmt.Sprint(i)))
					switch {
					case err == nil:
						<-time.After(time.Second)
						done()
					case errors.As(err, new(*fair.BusyError)):
						refused.Add(1)
					}
				}
			})
		}
		<-time.After(time.Minute) // until it is known of all how long their turns are
		for range 100 {
			began := time.Now()
			done, err := shared.Take(fair.WithClient(ctx, "behaved"))
			if waited := time.Since(began); err != nil || waited > 0 {
				t.Fatalf("waited %s: %v", waited, err)
			}
			<-time.After(2 * time.Millisecond)
			done()
			<-time.After(time.Second)
		}
		if refused.Load() == 0 {
			t.Error("others wait for longer than anybody may, and none was refused")
		}
		cancel()
		all.Wait()
		if n := shared.Running(); n != 0 {
			t.Errorf("%d turns after all", n)
		}
	})
}

// TestTurnsAreShared: clients that want as much as they get, one turn at a time or many, long
// ones or short ones, get their share.
func TestTurnsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := turns(1, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		had := make([]time.Duration, 4)
		var mu sync.Mutex
		var all sync.WaitGroup
		for i, calls := range []int{1, 1, 10, 100} {
			turn := []time.Duration{100 * time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond}[i]
			for range calls {
				all.Go(func() {
					for ctx.Err() == nil {
						done, err := shared.Take(fair.WithClient(ctx, fmt.Sprint(i)))
						if err != nil {
							continue
						}
						<-time.After(turn)
						done()
						mu.Lock()
						had[i] += turn
						mu.Unlock()
					}
				})
			}
		}
		all.Wait()
		for i, d := range had {
			if d < 13*time.Second {
				t.Errorf("client %d had only %s of a minute that four share", i, d)
			}
		}
	})
}

// TestATurnIsTakenOnce: a goroutine may begin the turn that it has, and end one that it does not have.
func TestATurnIsTakenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := turns(1, 1)
		ctx := fair.WithClient(t.Context(), "a")
		for range 2 {
			turn := fair.Of(shared)
			turn.End()
			for range 2 {
				if err := turn.Begin(ctx); err != nil {
					t.Fatal(err)
				}
			}
			turn.End()
			turn.End()
		}
	})
}

func TestTurnsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := turns(4, 1)
		a := fair.WithClient(t.Context(), "a")
		done, err := shared.Take(a)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var busy *fair.BusyError
		if _, err := shared.Take(a); !errors.As(err, &busy) || busy.Setting != "max_client_turns" || busy.Limit != 1 || busy.RetryAfter <= 0 {
			t.Errorf("a second turn: %v", err)
		}
		if waited := time.Since(began); waited != 10*time.Second {
			t.Errorf("it was refused after %s", waited)
		}
		canceled, cancel := context.WithCancel(a)
		cancel()
		if _, err := shared.Take(canceled); !errors.Is(err, context.Canceled) {
			t.Errorf("of a client that disconnected: %v", err)
		}
		for i := range 7 { // as many again as the limit, for clients that had nothing
			if _, err := shared.Take(fair.WithClient(t.Context(), fmt.Sprint(i))); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		}
		if _, err := shared.Take(t.Context()); !errors.As(err, &busy) || busy.Setting != "max_turns" || busy.Limit != 4 {
			t.Errorf("beyond all: %v", err)
		}
		done()
		done()
		if n := shared.Running(); n != 7 {
			t.Errorf("%d turns", n)
		}
		if done, err := shared.Take(t.Context()); err != nil {
			t.Error(err)
		} else {
			done()
		}
		var none *fair.Turns
		if done, err := none.Take(t.Context()); err != nil {
			t.Error(err)
		} else {
			done()
		}
	})
}
