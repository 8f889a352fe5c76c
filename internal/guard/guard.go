// Package guard contains the panics of work that no caller is there to recover for: here they are logged
// and counted.
package guard

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
)

var panics atomic.Int64

// Panics is how many were contained since the process began.
func Panics() int64 { return panics.Load() }

// Run runs a task and returns its error; a panic is one.
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
