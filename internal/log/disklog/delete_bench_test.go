package disklog_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logtest"
)

// BenchmarkDelete deletes a session of 100,000 events while 64 writers append to others: how long
// the call takes, how long until the bytes are gone from the disk, and what the appends take meanwhile.
func BenchmarkDelete(b *testing.B) {
	const events, batch, writers = 100_000, 500, 64
	text := strings.Repeat("what was said ", 40)
	for b.Loop() {
		b.StopTimer()
		s := open(b, b.TempDir(), disklog.Options{})
		for i := 0; i < events; i += batch {
			var all []eventlog.Event
			for n := range batch {
				all = append(all, logtest.Say(fmt.Sprint(i+n, " ", text)))
			}
			mustAppend(b, s, "long", all...)
		}
		stop := make(chan struct{})
		var mu sync.Mutex
		var took []time.Duration
		var work, warm sync.WaitGroup
		warm.Add(writers)
		for w := range writers {
			work.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					began := time.Now()
					if i == 50 {
						warm.Done()
					}
					mustAppend(b, s, fmt.Sprint("w", w), logtest.Say(fmt.Sprint(w, " ", i, text)))
					mu.Lock()
					took = append(took, time.Since(began))
					mu.Unlock()
				}
			})
		}
		warm.Wait()
		p99 := func() float64 {
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(took)
			p := took[len(took)*99/100]
			took = nil
			return float64(p.Microseconds()) / 1000
		}
		b.ReportMetric(p99(), "append-p99-before-ms")
		b.StartTimer()
		began := time.Now()
		if err := s.DeleteSession(b.Context(), "long", 0, nil); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(began).Microseconds())/1000, "call-ms")
		if err := s.WaitErased(b.Context(), 0); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(began).Microseconds())/1000, "erased-ms")
		b.ReportMetric(p99(), "append-p99-ms")
		b.StopTimer()
		close(stop)
		work.Wait()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkDeleteForkOfForks deletes a session from the middle of a chain of forks, each of the one before.
func BenchmarkDeleteForkOfForks(b *testing.B) {
	const depth = 1000
	s := open(b, b.TempDir(), disklog.Options{})
	id := func(n int) string { return fmt.Sprint("fork-", n) }
	mustAppend(b, s, id(0), logtest.Say("said 0"))
	for n := 1; n < depth; n++ {
		if _, err := s.Fork(b.Context(), eventlog.ForkRequest{ParentID: id(n - 1), NewID: id(n), At: eventlog.Seq(n)}); err != nil {
			b.Fatal(err)
		}
		mustAppend(b, s, id(n), logtest.Say(fmt.Sprint("said ", n)))
	}
	next := depth / 2
	b.ResetTimer()
	for b.Loop() {
		if err := s.DeleteSession(b.Context(), id(next), 0, nil); err != nil {
			b.Fatal(err)
		}
		next++
	}
	b.StopTimer()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
