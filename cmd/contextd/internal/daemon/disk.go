package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// syncWatch measures how long syncs of the disk take. It warns about slow ones, and about a sync that does not end.
type syncWatch struct {
	clock  func() time.Time
	slow   time.Duration
	record func(time.Duration)
	logger *slog.Logger

	mu      sync.Mutex
	running map[uint64]time.Time // when the syncs under way began
	last    uint64
	// Slow syncs that were not reported yet.
	late  int
	worst time.Duration
}

// begin is called before a sync. It returns a function to call after the sync.
func (w *syncWatch) begin() func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	id := w.last
	if w.running == nil {
		w.running = map[uint64]time.Time{}
	}
	w.running[id] = w.clock()
	return func() { w.end(id) }
}

func (w *syncWatch) end(id uint64) {
	now := w.clock()
	w.mu.Lock()
	took := now.Sub(w.running[id])
	delete(w.running, id)
	if took > w.slow {
		w.late++
		w.worst = max(w.worst, took)
	}
	w.mu.Unlock()
	w.record(took)
}

// longest returns how long the longest running sync has taken so far; 0 if none is running.
func (w *syncWatch) longest() (took time.Duration) {
	now := w.clock()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, since := range w.running {
		took = max(took, now.Sub(since))
	}
	return took
}

// report warns about the slow syncs since the last report, in one line.
func (w *syncWatch) report(ctx context.Context) {
	now := w.clock()
	w.mu.Lock()
	late, worst := w.late, w.worst
	w.late, w.worst = 0, 0
	for _, since := range w.running {
		if took := now.Sub(since); took > w.slow {
			late++
			worst = max(worst, took)
		}
	}
	w.mu.Unlock()
	if late > 0 {
		w.logger.WarnContext(ctx, "the disk is slow: appends wait for its syncs", "syncs", late, "longest", worst, "warned_above", w.slow)
	}
}
