// Package guard recovers from panics of background work, which has no caller to do so. It logs and counts
// them.
package guard

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
)

var panics atomic.Int64

// Panics is how many panics were recovered since the process began.
func Panics() int64 { return panics.Load() }

// Run runs a task and returns its error. A panic is returned as an error.
func Run(logger *slog.Logger, task string, run func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			panics.Add(1)
			logger.Error("a task has failed by a panic", "task", task, "panic", v, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic in task %q: %v", task, v)
		}
	}()
	return run()
}
