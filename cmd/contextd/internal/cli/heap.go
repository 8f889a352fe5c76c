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

// limitHeap sets the garbage collector's limit from the container's memory, unless
// GOMEMLIMIT says otherwise.
func limitHeap(logger *slog.Logger) {
	limit, err := memlimit.Set(memlimit.WithRatio(heapShare), memlimit.WithProvider(memlimit.FromCgroup))
	switch {
	case err != nil:
		logger.Debug("no memory limit was found", "error", err)
	case limit < math.MaxInt64:
		logger.Info("the garbage collector keeps the heap below", "bytes", limit)
	}
}

// A daemon with few sessions has a heap so small that a busy one would collect it ten times a
// second. Where collections would come within busyInterval of each other, the heap grows to
// roomyHeap before the next.
const (
	busyInterval = time.Second
	roomyHeap    = 64 << 20
	plainPercent = 100 // of GOGC
)

// spareCollector sets the garbage collector's percentage after each collection, until the
// function that it returns is called. The limit of limitHeap holds all the same.
func spareCollector() (stop func()) {
	var mu sync.Mutex
	stopped := false
	percent, last := plainPercent, time.Now()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	// The finalizer of what nobody holds runs after each collection, by one goroutine.
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

// collectorPercent is how much garbage may come before the next collection, in percent of what is
// live, where collections at plainPercent would be so far apart.
func collectorPercent(live uint64, apart time.Duration) int {
	if apart > busyInterval || live >= roomyHeap/2 || live == 0 {
		return plainPercent
	}
	return int((roomyHeap - live) * 100 / live)
}
