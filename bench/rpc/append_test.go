// Package rpc_test measures durable appends through gRPC against bare Pebble;
// see README.md for how to read the numbers.
package rpc_test

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// roundEvents is how many events the writers of a way append per round.
func roundEvents(size, writers int) int {
	if writers == 1 {
		return 300
	}
	return (6400 << 10) / (size/4 + 768)
}

// inFlight is how many unacknowledged appends a stream keeps.
const inFlight = 16

// BenchmarkAppend appends events in all ways in turn; each writer has its own session. An event counts when
// it is durable. An operation is one round of all ways, so that other load on the machine slows all of them.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10} {
		for _, writers := range []int{64, 1} {
			b.Run(fmt.Sprintf("size=%dKiB/writers=%d", size>>10, writers), func(b *testing.B) { appendTo(b, size, writers) })
		}
	}
}

// appendAll appends the events that next returns until there are no more, and reports how long each took to
// become durable.
type appendAll func(writer int, next func() (int, bool), took func(time.Duration)) error

// way is a way to append events. Its first round is not measured.
type way struct {
	name   string
	append appendAll
	// beside makes another caller assemble contexts without pause meanwhile.
	beside bool
	rounds []round
}

// round is the result of one round of a way.
type round struct {
	rate     float64 // events per second
	p50, p99 float64 // of one append, in microseconds
}

func appendTo(b *testing.B, size, writers int) {
	s := newTexts(b, size)
	db := openPebble(b)
	d, bare := start(b), startBare(b)
	defer d.stop()
	defer bare.stop()
	ways := []*way{
		{name: "pebble", append: s.pebble(db)},
		{name: "bare-unary", append: s.unary(bare)},
		{name: "unary", append: s.unary(d)},
		{name: "unary-beside", append: s.unary(d), beside: true},
	}
	if writers > 1 {
		ways = append(ways, &way{name: "bare-stream", append: s.stream(bare)}, &way{name: "stream", append: s.stream(d)}, &way{name: "stream-beside", append: s.stream(d), beside: true})
	}
	compare(b, d, ways, writers, roundEvents(size, writers))
}

// compare runs rounds of all ways, and reports their ratios to the first way.
func compare(b *testing.B, d *process, ways []*way, writers, events int) {
	var n atomic.Int64
	for i := range b.N + 1 {
		if i == 1 {
			b.ResetTimer()
		}
		for _, w := range ways {
			if r := measure(b, d, w, &n, writers, events); i > 0 {
				w.rounds = append(w.rounds, r)
			}
		}
	}
	b.StopTimer()
	b.ReportMetric(0, "ns/op") // meaningless here
	for _, w := range ways {
		b.ReportMetric(median(w.rounds, func(r round) float64 { return r.rate }), w.name+"-events/s")
		b.ReportMetric(median(w.rounds, func(r round) float64 { return r.p50 }), w.name+"-p50-µs")
		b.ReportMetric(median(w.rounds, func(r round) float64 { return r.p99 }), w.name+"-p99-µs")
		if w != ways[0] {
			b.ReportMetric(ratio(w.rounds, ways[0].rounds, func(r round) float64 { return r.rate }), w.name+"/"+ways[0].name)
			b.ReportMetric(ratio(w.rounds, ways[0].rounds, func(r round) float64 { return r.p99 }), w.name+"/"+ways[0].name+"-p99")
		}
	}
}

// measure runs one round.
func measure(b *testing.B, d *process, w *way, taken *atomic.Int64, writers, events int) round {
	stop := func() error { return nil }
	if w.beside {
		stop = d.assembleOn(b)
	}
	last := taken.Load() + int64(events)
	next := func() (int, bool) {
		n := taken.Add(1)
		return int(n), n <= last
	}
	latencies := make([][]time.Duration, writers)
	var wg sync.WaitGroup
	began := time.Now()
	for i := range writers {
		wg.Go(func() {
			took := func(d time.Duration) { latencies[i] = append(latencies[i], d) }
			if err := w.append(i, next, took); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(began)
	if err := stop(); err != nil {
		b.Error(err)
	}
	all := slices.Concat(latencies...)
	if b.Failed() || len(all) != events {
		b.Fatalf("%s: %d of %d events were appended", w.name, len(all), events)
	}
	slices.Sort(all)
	return round{
		rate: float64(events) / elapsed.Seconds(),
		p50:  float64(all[len(all)/2].Microseconds()),
		p99:  float64(all[len(all)*99/100].Microseconds()),
	}
}

func median(of []round, value func(round) float64) float64 {
	return middle(len(of), func(i int) float64 { return value(of[i]) })
}

// ratio is the median of the ratios within a round.
func ratio(of, to []round, value func(round) float64) float64 {
	return middle(len(of), func(i int) float64 { return value(of[i]) / value(to[i]) })
}

func middle(n int, at func(int) float64) float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = at(i)
	}
	slices.SortFunc(all, cmp.Compare[float64])
	return all[n/2]
}
