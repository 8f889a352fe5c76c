package pglog

import (
	"context"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Newest is the number of the newest migration.
var Newest = len(migrations)

// Listening waits until the store hears of other processes' writes.
func (s *Store) Listening(ctx context.Context) {
	for ctx.Err() == nil {
		s.watch.mu.Lock()
		listening := s.watch.listening
		s.watch.mu.Unlock()
		if listening {
			return
		}
		pause(ctx, s.opts.Poll/1000)
	}
}

// FoundNoRoom is a write that found the disk full.
func (s *Store) FoundNoRoom() { s.watch.wrote(&eventlog.FullError{}) }

// Probed is a probe that found the database well.
func (s *Store) Probed() { s.watch.probed() }
