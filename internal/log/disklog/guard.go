package disklog

import "github.com/contextd/contextd/internal/guard"

// guarded runs a part of the store's work. After a panic nobody knows what it did, so it halts the store:
// whoever waits is notified, and the disk stays as it is.
func (s *Store) guarded(task string, run func()) {
	err := guard.Run(s.logger, task, func() error {
		run()
		return nil
	})
	if err != nil {
		s.disk.halt(err)
	}
}

// start runs a task beside all others until Close, which it must notice.
func (s *Store) start(task string, run func()) {
	s.background.Go(func() { s.guarded(task, run) })
}
