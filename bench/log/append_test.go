// Package log_test measures the stores of internal/log against each other and
// against bare Pebble; see README.md for how to read the numbers.
package log_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/memlog"
)

// appender appends one event of the given size to the writer's own log, and returns when it is durable.
type appender func(writer, n int, text string) error

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10} {
		for _, writers := range []int{1, 16, 64} {
			for _, store := range []struct {
				name string
				open func(b *testing.B) (appender, func() error)
			}{{"memory", memory}, {"disk", disk}, {"pebble", barePebble}} {
				b.Run(fmt.Sprintf("size=%dKiB/writers=%d/store=%s", size>>10, writers, store.name), func(b *testing.B) {
					appendEvents(b, store.open, writers, size)
				})
			}
		}
	}
}

func appendEvents(b *testing.B, open func(b *testing.B) (appender, func() error), writers, size int) {
	texts := newTexts(size)
	add, closeStore := open(b)
	var next atomic.Int64
	latencies := make([][]time.Duration, writers)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuTime()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for {
				n := int(next.Add(1))
				if n > b.N {
					return
				}
				began := time.Now()
				if err := add(w, n, texts[n%len(texts)]); err != nil {
					b.Error(err)
					return
				}
				latencies[w] = append(latencies[w], time.Since(began))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	cpu = cpuTime() - cpu
	all := slices.Concat(latencies...)
	slices.Sort(all)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-µs/event")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
	if err := closeStore(); err != nil {
		b.Fatal(err)
	}
}

// cpuTime is the processor time of this process. Unlike elapsed time it does not depend on the machine's
// load.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// newTexts makes texts that compress about as well as JSON does.
func newTexts(size int) []string {
	r := rand.New(rand.NewPCG(1, uint64(size)))
	words := make([]string, 512)
	for i := range words {
		words[i] = fmt.Sprintf("%x ", r.Uint64()>>r.IntN(48))
	}
	texts := make([]string, 64)
	for i := range texts {
		text := make([]byte, 0, size+16)
		for len(text) < size {
			text = append(text, words[r.IntN(len(words))]...)
		}
		texts[i] = string(text[:size])
	}
	return texts
}

func memory(*testing.B) (appender, func() error) { return storeAppender(memlog.New()) }

func disk(b *testing.B) (appender, func() error) {
	s, err := disklog.Open(b.TempDir(), disklog.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return storeAppender(s)
}

func storeAppender(s eventlog.Store) (appender, func() error) {
	ctx := context.Background()
	return func(writer, n int, text string) error {
		return appendOne(ctx, s, fmt.Sprintf("session-%d", writer), n, text)
	}, s.Close
}

func appendOne(ctx context.Context, s eventlog.Store, id string, n int, text string) error {
	c, err := s.Append(ctx, id, eventlog.Batch{Events: []eventlog.Event{event(n, text)}})
	if err == nil {
		_, err = c.Wait(ctx)
	}
	return err
}

func event(n int, text string) eventlog.Event {
	return eventlog.Event{
		ID:   fmt.Sprintf("0199aaaa-bbbb-7ccc-8ddd-%012d", n),
		Time: time.Unix(1780000000, int64(n)),
		Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: text}}},
	}
}

// barePebble is the best that the disk store could achieve: one key per event, without index, chain and
// checks.
func barePebble(b *testing.B) (appender, func() error) {
	o := &pebble.Options{FormatMajorVersion: pebble.FormatNewest, MemTableSize: 16 << 20, CacheSize: 16 << 20, Logger: quiet{}}
	o.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy {
		return pebble.ValueSeparationPolicy{Enabled: true, MinimumSize: 512, MaxBlobReferenceDepth: 100, TargetGarbageRatio: 0.2}
	}
	db, err := pebble.Open(b.TempDir(), o)
	if err != nil {
		b.Fatal(err)
	}
	return func(writer, n int, text string) error {
		key := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte{'e'}, uint64(writer)), uint64(n))
		batch := db.NewBatch()
		if err := batch.Set(key, []byte(text), nil); err != nil {
			return err
		}
		if err := batch.Commit(pebble.Sync); err != nil {
			return err
		}
		return batch.Close()
	}, db.Close
}

type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}
