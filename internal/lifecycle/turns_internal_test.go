package lifecycle

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// TestTurns: at most one has a session's turn, also where some give up, and all who do not give up get it.
func TestTurns(t *testing.T) {
	var all turns
	var inside, had atomic.Int32
	var work sync.WaitGroup
	cause := errors.New("given up")
	for i := range 300 {
		ctx, patient := t.Context(), i%3 == 0
		if !patient {
			impatient, cancel := context.WithCancelCause(ctx)
			work.Go(func() { cancel(cause) })
			ctx = impatient
		}
		work.Go(func() {
			if err := all.enter(ctx, "s"); err != nil {
				if patient || !errors.Is(err, cause) {
					t.Error(err)
				}
				return
			}
			if n := inside.Add(1); n != 1 {
				t.Errorf("%d have the turn", n)
			}
			if patient {
				had.Add(1)
			}
			inside.Add(-1)
			all.leave("s")
		})
	}
	work.Wait()
	if had.Load() != 100 || len(all.waiting) != 0 {
		t.Errorf("%d of 100 had the turn, and %d sessions are still held", had.Load(), len(all.waiting))
	}
}
