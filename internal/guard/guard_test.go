package guard

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	before, failure := Panics(), errors.New("as it does")
	if err := Run(logger, "first", func() error { return failure }); !errors.Is(err, failure) || Panics() != before {
		t.Errorf("%v, %d panics", err, Panics()-before)
	}
	err := Run(logger, "second", func() error { panic("out of luck") })
	if err == nil || err.Error() != `panic in task "second": out of luck` || Panics() != before+1 {
		t.Errorf("%v, %d panics", err, Panics()-before)
	}
	if line := log.String(); !strings.Contains(line, "level=ERROR") || !strings.Contains(line, "guard_test.go") {
		t.Errorf("the log: %s", line)
	}
}
