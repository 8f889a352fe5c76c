package daemon

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/contextd/contextd/internal/log/disklog"
)

// Syncs that are slow give one warning for all of them, also while they last.
func TestSlowSyncsAreWarnedOf(t *testing.T) {
	now := time.Unix(0, 0)
	var log bytes.Buffer
	var recorded []time.Duration
	w := &syncWatch{
		clock: func() time.Time { return now }, slow: time.Second, logger: slog.New(slog.NewTextHandler(&log, nil)),
		record: func(d time.Duration) { recorded = append(recorded, d) },
	}
	reported := func() string {
		log.Reset()
		w.report(t.Context())
		return log.String()
	}
	for _, took := range []time.Duration{time.Millisecond, 2 * time.Second, 3 * time.Second} {
		end := w.begin()
		now = now.Add(took)
		end()
	}
	if line := reported(); !strings.Contains(line, "level=WARN") || !strings.Contains(line, "syncs=2 longest=3s warned_above=1s") {
		t.Errorf("after three syncs: %q", line)
	}
	if line := reported(); line != "" {
		t.Errorf("again: %q", line)
	}
	end := w.begin()
	now = now.Add(time.Second)
	if line := reported(); line != "" {
		t.Errorf("in time: %q", line)
	}
	now = now.Add(4 * time.Second)
	if line := reported(); !strings.Contains(line, "syncs=1 longest=5s") {
		t.Errorf("while it lasts: %q", line)
	}
	if took := w.longest(); took != 5*time.Second {
		t.Errorf("the longest under way has taken %s", took)
	}
	end()
	if took := w.longest(); took != 0 {
		t.Errorf("after the last: %s", took)
	}
	if len(recorded) != 4 || recorded[0] != time.Millisecond || recorded[3] != 5*time.Second {
		t.Errorf("recorded %v", recorded)
	}
}

// TestClockSetBack: where the clock was set back since a store was written to, the log says so, and times go on from that
// write until the clock is right.
func TestClockSetBack(t *testing.T) {
	dir := t.TempDir()
	store, err := disklog.Open(dir, disklog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	written := disklog.Written(dir)
	const hours = 5 * time.Hour
	for name, c := range map[string]struct {
		dir         string
		clock, want time.Time
	}{
		"right":       {dir, written, written},
		"ahead":       {dir, written.Add(hours), written.Add(hours)},
		"set back":    {dir, written.Add(-hours), written},
		"a new store": {filepath.Join(dir, "new"), written.Add(-hours), written.Add(-hours)},
	} {
		var log bytes.Buffer
		now := c.clock
		clock := notSetBack(func() time.Time { return now }, disklog.Written(c.dir), slog.New(slog.NewTextHandler(&log, nil)))
		if got := strings.Contains(log.String(), "the clock is earlier than the newest write"); got != !c.want.Equal(c.clock) {
			t.Errorf("%s: %q", name, log.String())
		}
		for _, passed := range []time.Duration{0, time.Hour} {
			if now = c.clock.Add(passed); !clock().Equal(c.want.Add(passed)) {
				t.Errorf("%s: after %s it is %s", name, passed, clock())
			}
		}
		if now = written.Add(10 * hours); !clock().Equal(now) {
			t.Errorf("%s: once it is right it is %s", name, clock())
		}
	}
}
