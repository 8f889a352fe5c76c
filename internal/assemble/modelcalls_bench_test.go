package assemble_test

import (
	"context"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/records"
)

// BenchmarkCalibration measures what calibration adds to an assembly in a session of a thousand calls: for
// the model of the newest call, and for a model that was never called.
func BenchmarkCalibration(b *testing.B) {
	store, err := disklog.Open(b.TempDir(), disklog.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	}()
	engine := newEngine(b, store)
	fill(b, store, 100)
	out, err := engine.Assemble(context.Background(), wide("m"))
	if err != nil {
		b.Fatal(err)
	}
	call := records.Call{SessionID: "s", ProjectionID: out.Projection.ID, InputTokens: out.Projection.Tokens}
	for range 1000 {
		if _, _, err := engine.RecordCall(context.Background(), call); err != nil {
			b.Fatal(err)
		}
	}
	for _, model := range []string{"m", "never called"} {
		b.Run(model, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := records.Calibration(context.Background(), store, "s", out.AsOf, budget.Budget{Model: model, Tokenizer: budget.TokenizerO200K}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
