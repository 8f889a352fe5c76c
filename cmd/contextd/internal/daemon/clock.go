package daemon

import (
	"log/slog"
	"sync"
	"time"
)

// notSetBack is the clock, unless that is earlier than the newest write to the store. Then it begins with that write, so
// that nothing is dated too old and deleted too early, until the clock is set right. keep is given what time it is then,
// at once and every minute, for the next start.
//
// A write far ahead of the clock counts as well: a machine whose clock begins in 1970 at each start is not distinguished
// from a write under a clock that was ahead, and to date too late deletes nothing.
func notSetBack(clock func() time.Time, written time.Time, keep func(time.Time), logger *slog.Logger) func() time.Time {
	start := clock()
	back := written.Sub(start)
	if back <= time.Minute {
		return clock
	}
	logger.Warn("the clock is earlier than the newest write to the store: what is stored is dated from that write on until the clock is later than it",
		"earlier_by", back.Round(time.Second), "if_the_clock_is_right", "stop the daemon, and touch INVENTORY and FORMAT in the data directory")
	keep(written)
	var mu sync.Mutex
	kept := written
	return func() time.Time {
		now := clock()
		if !now.Before(written) {
			return now
		}
		at := written.Add(max(0, now.Sub(start)))
		mu.Lock()
		defer mu.Unlock()
		if at.Sub(kept) >= time.Minute {
			kept = at
			keep(at)
		}
		return at
	}
}
