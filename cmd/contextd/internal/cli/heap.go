package cli

import (
	"log/slog"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// heapShare is how much of a container's memory the heap may take before the garbage
// collector works harder.
const heapShare = 0.8

// limitHeap sets the garbage collector's soft memory limit from the container's limit, unless GOMEMLIMIT is
// set.
func limitHeap(logger *slog.Logger) {
	limit, err := memlimit.Set(memlimit.WithRatio(heapShare), memlimit.WithProvider(memlimit.FromCgroup))
	switch {
	case err != nil:
		logger.Debug("no memory limit was found", "error", err)
	case limit < math.MaxInt64:
		logger.Info("the garbage collector keeps the heap below", "bytes", limit)
	}
}

// The heap of a daemon with few sessions is so small that under load it would be collected ten times a
// second. Where the last two collections came within busyInterval, the next comes when the heap has roomyHeap
// bytes.
const (
	busyInterval = time.Second
	roomyHeap    = 64 << 20
	plainPercent = 100 // of GOGC
)

// spareCollector adjusts GOGC after each collection, until stop is called. The limit of limitHeap still
// applies.
func spareCollector() (stop func()) {
	var mu sync.Mutex
	stopped := false
	percent, last := plainPercent, time.Now()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	// A finalizer on an unreachable object runs after each collection. The runtime runs them in one
	// goroutine.
	type sentinel struct{ _ *byte }
	var collected func(*sentinel)
	collected = func(s *sentinel) {
		mu.Lock()
		defer mu.Unlock()
		if stopped {
			return
		}
		metrics.Read(live)
		now := time.Now()
		next := collectorPercent(live[0].Value.Uint64(), now.Sub(last)*plainPercent/time.Duration(percent))
		last = now
		if next != percent {
			percent = next
			debug.SetGCPercent(percent)
		}
		runtime.SetFinalizer(s, collected)
	}
	runtime.SetFinalizer(new(sentinel), collected)
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		debug.SetGCPercent(plainPercent)
	}
}

// collectorPercent is the value for GOGC, given the live bytes and the time between the last collections at
// plainPercent.
func collectorPercent(live uint64, apart time.Duration) int {
	if apart > busyInterval || live >= roomyHeap/2 || live == 0 {
		return plainPercent
	}
	return int((roomyHeap - live) * 100 / live)
}
