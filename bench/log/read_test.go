package log_test

import (
	"context"
	"fmt"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/memlog"
)

// fill appends n events of 1 KiB to a session, in batches.
func fill(b *testing.B, s eventlog.Store, id string, n int) {
	b.Helper()
	texts := newTexts(1 << 10)
	ctx := context.Background()
	for at := 0; at < n; {
		var batch eventlog.Batch
		for ; at < n && len(batch.Events) < 500; at++ {
			batch.Events = append(batch.Events, event(at, texts[at%len(texts)]))
		}
		c, err := s.Append(ctx, id, batch)
		if err == nil {
			_, err = c.Wait(ctx)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func openDisk(b *testing.B, dir string) *disklog.Store {
	b.Helper()
	s, err := disklog.Open(dir, disklog.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func closeStore(b *testing.B, s eventlog.Store) {
	b.Helper()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkReopen opens a store with many events and reads the newest: what a daemon does between its start
// and its first answer.
func BenchmarkReopen(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			dir := b.TempDir()
			s := openDisk(b, dir)
			fill(b, s, "session", n)
			closeStore(b, s)
			for b.Loop() {
				s := openDisk(b, dir)
				read(b, s, eventlog.Seq(n), 1)
				b.StopTimer()
				closeStore(b, s)
				b.StartTimer()
			}
		})
	}
}

func read(b *testing.B, s eventlog.Store, from eventlog.Seq, want int) {
	b.Helper()
	n := 0
	for _, err := range s.Read(context.Background(), "session", from, from+eventlog.Seq(want)-1) {
		if err != nil {
			b.Fatal(err)
		}
		n++
	}
	if n != want {
		b.Fatalf("read %d events, want %d", n, want)
	}
}

// BenchmarkRead reads ranges in the middle of a long log. The cost should depend on the range, not on the
// log.
func BenchmarkRead(b *testing.B) {
	for _, length := range []int{1_000, 100_000} {
		memory := memlog.New()
		disk := openDisk(b, b.TempDir())
		fill(b, memory, "session", length)
		fill(b, disk, "session", length)
		for _, want := range []int{1, 100, 1000} {
			for name, s := range map[string]eventlog.Store{"memory": memory, "disk": disk} {
				b.Run(fmt.Sprintf("log=%d/range=%d/store=%s", length, want, name), func(b *testing.B) {
					b.SetBytes(int64(want) << 10)
					for i := 0; b.Loop(); i++ {
						read(b, s, eventlog.Seq(1+i*997%(length-want+1)), want)
					}
					b.ReportMetric(float64(want*b.N)/b.Elapsed().Seconds(), "events/s")
				})
			}
		}
		closeStore(b, memory)
		closeStore(b, disk)
	}
}

// BenchmarkFork forks logs of different lengths at their middle. The cost should not depend on the length.
func BenchmarkFork(b *testing.B) {
	for _, length := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("log=%d", length), func(b *testing.B) {
			s := openDisk(b, b.TempDir())
			fill(b, s, "session", length)
			for i := 0; b.Loop(); i++ {
				_, err := s.Fork(context.Background(), eventlog.ForkRequest{
					ParentID: "session", At: eventlog.Seq(length / 2), NewID: fmt.Sprintf("fork-%d", i),
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			closeStore(b, s)
		})
	}
}

// BenchmarkDelete deletes sessions of 100 events from a store with many others, and waits until their bytes
// are gone from the disk.
func BenchmarkDelete(b *testing.B) {
	for _, others := range []int{0, 50_000} {
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			s := openDisk(b, b.TempDir())
			for i := range others / 500 {
				fill(b, s, fmt.Sprintf("other-%d", i), 500)
			}
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				id := fmt.Sprintf("session-%d", i)
				fill(b, s, id, 100)
				b.StartTimer()
				if err := s.DeleteSession(context.Background(), id, 0, nil); err != nil {
					b.Fatal(err)
				}
			}
			closeStore(b, s)
		})
	}
}
