package disklog

import (
	"fmt"
	"runtime/debug"
)

// guard, deferred, halts the store where a panic says that it does not know what it did. Nobody waits for
// ever for what a goroutine has left undone, and the disk stays as it is.
func (s *Store) guard(task string) {
	if v := recover(); v != nil {
		s.logger.Error("a panic: the event log takes no more work until it is opened again", "task", task, "panic", v, "stack", string(debug.Stack()))
		s.disk.halt(fmt.Errorf("%s: panic: %v", task, v))
	}
}

// start runs a task beside all others until Close, which it must notice.
func (s *Store) start(task string, run func()) {
	s.background.Go(func() {
		defer s.guard(task)
		run()
	})
}
