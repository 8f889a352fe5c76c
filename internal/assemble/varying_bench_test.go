package assemble_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/reduce"
)

// BenchmarkVaryingBudget compares 600 assemblies of a session of 600 events whose budget
// differs each time, as that of an agent that asks for what is left of its window, with as
// many under one budget: time, and what the engine holds when they are done.
func BenchmarkVaryingBudget(b *testing.B) {
	const assemblies = 600
	run := func(window func(i int) uint64) (took time.Duration, held float64) {
		store, err := disklog.Open(b.TempDir(), disklog.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer store.Close()
		fill(b, store, assemblies)
		engine := newEngine(b, store)
		req := assemble.Request{SessionID: "s", Policy: assemble.Policy{Reduction: reduce.DefaultPolicy()}}
		heap := func() float64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return float64(m.HeapAlloc)
		}
		start := time.Now()
		for i := range assemblies {
			req.Budget = budget.Spec{MaxTokens: window(i), Tokenizer: budget.TokenizerO200K}
			if _, err := engine.Assemble(b.Context(), req); err != nil {
				b.Fatal(err)
			}
		}
		took = time.Since(start)
		held = heap()
		runtime.KeepAlive(engine)
		return took, held - heap()
	}
	var times, heaps [2]float64
	for b.Loop() {
		for i, window := range []func(int) uint64{
			func(int) uint64 { return 32_768 },
			func(i int) uint64 { return 32_768 - 16*uint64(i) },
		} {
			took, held := run(window)
			times[i] += took.Seconds()
			heaps[i] += held
		}
	}
	b.ReportMetric(times[0]/float64(b.N), "fixed-s")
	b.ReportMetric(times[1]/float64(b.N), "varying-s")
	b.ReportMetric(times[1]/times[0], "time-ratio")
	b.ReportMetric(heaps[0]/float64(b.N), "fixed-B")
	b.ReportMetric(heaps[1]/float64(b.N), "varying-B")
	b.ReportMetric(heaps[1]/heaps[0], "memory-ratio")
}
