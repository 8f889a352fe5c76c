package rpc_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// BenchmarkAppendBesideAssembly appends to one session that was assembled before, so that
// each answer has an estimate of the budget: alone, and while another caller assembles its
// contexts without a pause.
func BenchmarkAppendBesideAssembly(b *testing.B) {
	for _, caller := range []string{"none", "assembling"} {
		b.Run("caller="+caller, func(b *testing.B) {
			d := start(b)
			defer d.stop()
			client := contextdv1.NewContextServiceClient(d.conn(0))
			ctx, cancel := context.WithCancel(b.Context())
			for n := range 64 {
				if _, err := client.AppendEvents(ctx, request(0, n)); err != nil {
					b.Fatal(err)
				}
			}
			if err := assembleOnce(ctx, client); err != nil {
				b.Fatal(err)
			}
			stopped := make(chan error, 1)
			go func() {
				var err error
				other := contextdv1.NewContextServiceClient(d.conn(1))
				for caller == "assembling" && ctx.Err() == nil && err == nil {
					err = assembleOnce(ctx, other)
				}
				stopped <- err
			}()
			var took []time.Duration
			for n := 64; b.Loop(); n++ {
				began := time.Now()
				if _, err := client.AppendEvents(ctx, request(0, n)); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			cancel()
			if err := <-stopped; err != nil && ctx.Err() == nil {
				b.Error(err)
			}
		})
	}
}

func assembleOnce(ctx context.Context, client contextdv1.ContextServiceClient) error {
	stream, err := client.AssembleContext(ctx, &contextdv1.AssembleContextRequest{
		SessionId: "session-0", Budget: &contextdv1.Budget{MaxTokens: 16_000}, Brief: true,
	})
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
