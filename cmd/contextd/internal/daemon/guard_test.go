package daemon

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// A task that fails, or panics, is a reason to stop, and one is enough.
func TestGuard(t *testing.T) {
	var log bytes.Buffer
	d := &Daemon{logger: slog.New(slog.NewTextHandler(&log, nil))}
	failed := make(chan error, 1)
	d.guard("first", failed, func() error { return nil })
	if len(failed) != 0 {
		t.Error("a task that ended is a reason to stop")
	}
	d.guard("second", failed, func() error { panic("out of luck") })
	d.guard("third", failed, func() error { return errors.New("late") })
	if err := <-failed; err == nil || err.Error() != `panic in task "second": out of luck` {
		t.Errorf("got %v", err)
	}
	if line := log.String(); !strings.Contains(line, "level=ERROR") || !strings.Contains(line, "guard_test.go") {
		t.Errorf("the log: %s", line)
	}
}
