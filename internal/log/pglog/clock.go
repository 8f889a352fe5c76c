package pglog

import "time"

// clocksApart is how far the clocks of this machine and of the database may differ without a warning.
const clocksApart = time.Minute

// compareClocks warns, once, if the clocks differ, because one daemon deletes by age what another daemon dated.
func (s *Store) compareClocks(there time.Time) {
	if s.opts.Clock == nil {
		return
	}
	apart := s.opts.Clock().Sub(there)
	if wrong := apart.Abs() > clocksApart; s.watch.apart.Swap(wrong) != wrong && wrong {
		s.logger.Warn("this machine's clock differs from the database's: sessions are dated by it, and may be deleted too early or too late", "ahead", apart.Round(time.Second))
	}
}
