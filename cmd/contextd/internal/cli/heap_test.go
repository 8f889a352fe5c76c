package cli

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

func TestCollectorPercent(t *testing.T) {
	for name, test := range map[string]struct {
		live  uint64
		apart time.Duration
		want  int
	}{
		"nothing was collected yet":   {0, 0, 100},
		"idle":                        {8 << 20, time.Minute, 100},
		"busy, with a small heap":     {8 << 20, 100 * time.Millisecond, 700},
		"busy, with half the room":    {32 << 20, 100 * time.Millisecond, 100},
		"busy, with a large heap":     {500 << 20, 100 * time.Millisecond, 100},
		"not so busy":                 {8 << 20, busyInterval + 1, 100},
		"just under half of the room": {roomyHeap/2 - 1, 0, 100},
	} {
		if got := collectorPercent(test.live, test.apart); got != test.want {
			t.Errorf("%s: %d instead of %d", name, got, test.want)
		}
	}
}

// TestBusyHeapsGrow collects garbage until the percentage has changed, and then restores it.
func TestBusyHeapsGrow(t *testing.T) {
	percent := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	if got := percent(); got != plainPercent {
		t.Skipf("SKIPPED: GOGC is %d", got)
	}
	stop := spareCollector()
	for percent() == plainPercent {
		runtime.GC() // the finalizer runs in a goroutine of its own
		runtime.Gosched()
	}
	stop()
	if got := percent(); got != plainPercent {
		t.Errorf("the percentage is left at %d", got)
	}
}
