package disklog

import "github.com/contextd/contextd/internal/guard"

// guarded runs a part of the store's work. After a panic it is unknown how much of it was done, so the store is
// halted: waiters get an error, and the disk stays as it is.
func (s *Store) guarded(task string, run func()) {
	err := guard.Run(s.logger, task, func() error {
		run()
		return nil
	})
	if err != nil {
		s.disk.halt(err)
	}
}

// start runs a background task, which must end on its own when Close begins.
func (s *Store) start(task string, run func()) {
	s.background.Go(func() { s.guarded(task, run) })
}
