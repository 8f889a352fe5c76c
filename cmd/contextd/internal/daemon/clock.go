package daemon

import (
	"log/slog"
	"time"
)

// notSetBack returns the clock, unless it is earlier than the newest write to the store. The returned clock then starts
// at that write, so that sessions get no dates in the past, by which they would be deleted too early.
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
