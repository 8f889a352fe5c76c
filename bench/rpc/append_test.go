// Package rpc_test measures durable appends through gRPC against bare Pebble;
// see README.md for how to read the numbers.
package rpc_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

const (
	writers = 64
	size    = 1 << 10
	// inFlight is how many appends a stream keeps on their way.
	inFlight = 16
)

// BenchmarkAppend appends events of 1 KiB by 64 writers, each to a session of its
// own, and counts one when it is durable.
func BenchmarkAppend(b *testing.B) {
	for _, way := range []struct {
		name string
		open func(b *testing.B) (worker, func())
	}{{"pebble", barePebble}, {"unary", unary}, {"stream", stream}} {
		b.Run("writers=64/size=1KiB/way="+way.name, func(b *testing.B) { measure(b, way.open) })
	}
}

// worker appends events as next hands them out, until there are no more, and
// reports how long each took to become durable.
type worker func(writer int, next func() (int, bool), took func(time.Duration)) error

func measure(b *testing.B, open func(b *testing.B) (worker, func())) {
	work, closeAll := open(b)
	defer closeAll()
	var taken atomic.Int64
	next := func() (int, bool) {
		n := int(taken.Add(1))
		return n, n <= b.N
	}
	latencies := make([][]time.Duration, writers)
	b.SetBytes(size)
	b.ResetTimer()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			took := func(d time.Duration) { latencies[w] = append(latencies[w], d) }
			if err := work(w, next, took); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Concat(latencies...)
	slices.Sort(all)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	if len(all) > 0 {
		b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-µs")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
	}
}

func request(writer, n int) *contextdv1.AppendEventsRequest {
	return &contextdv1.AppendEventsRequest{
		SessionId: fmt.Sprintf("session-%d", writer),
		Events: []*contextdv1.Event{{
			EventId: fmt.Sprintf("0199aaaa-bbbb-7ccc-8ddd-%012d", n),
			Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{
				Role:   contextdv1.Role_ROLE_USER,
				Blocks: []*contextdv1.Block{{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: texts[n%len(texts)]}}}},
			}},
		}},
	}
}

// unary waits for every append before it sends the next.
func unary(b *testing.B) (worker, func()) { return unaryTo(start(b)) }

func unaryTo(d *process) (worker, func()) {
	return func(writer int, next func() (int, bool), took func(time.Duration)) error {
		client := contextdv1.NewContextServiceClient(d.conn(writer))
		for {
			n, ok := next()
			if !ok {
				return nil
			}
			began := time.Now()
			if _, err := client.AppendEvents(context.Background(), request(writer, n)); err != nil {
				return err
			}
			took(time.Since(began))
		}
	}, d.stop
}

// stream keeps some appends of a writer on their way.
func stream(b *testing.B) (worker, func()) {
	d := start(b)
	return func(writer int, next func() (int, bool), took func(time.Duration)) error {
		s, err := contextdv1.NewContextServiceClient(d.conn(writer)).AppendEventStream(context.Background())
		if err != nil {
			return err
		}
		began := make(chan time.Time, inFlight)
		sent := make(chan error, 1)
		go func() {
			defer close(began)
			for {
				n, ok := next()
				if !ok {
					sent <- s.CloseSend()
					return
				}
				began <- time.Now()
				if err := s.Send(&contextdv1.AppendEventStreamRequest{Append: request(writer, n)}); err != nil {
					sent <- err
					return
				}
			}
		}()
		for at := range began {
			if _, err := s.Recv(); err != nil {
				return err
			}
			took(time.Since(at))
		}
		return <-sent
	}, d.stop
}
