package daemon

import (
	"log/slog"
	"time"
)

// notSetBack is the clock, unless that is earlier than the newest write to the store. Then it begins with that write, so
// that nothing is dated too old and deleted too early, until the clock is set right.
func notSetBack(clock func() time.Time, written time.Time, logger *slog.Logger) func() time.Time {
	start := clock()
	back := written.Sub(start)
	if back <= time.Minute {
		return clock
	}
	logger.Warn("the clock is earlier than the newest write to the store: what is stored is dated from that write on until the clock is later than it", "earlier_by", back.Round(time.Second))
	return func() time.Time {
		now := clock()
		if now.Before(written) {
			return written.Add(max(0, now.Sub(start)))
		}
		return now
	}
}
