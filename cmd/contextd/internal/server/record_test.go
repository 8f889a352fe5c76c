package server_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func recording(req *contextdv1.RecordModelCallRequest) func(context.Context, *api) error {
	return func(ctx context.Context, a *api) error {
		_, err := a.RecordModelCall(ctx, req)
		return err
	}
}

func (a *api) record(t *testing.T, req *contextdv1.RecordModelCallRequest) float64 {
	t.Helper()
	resp, err := a.RecordModelCall(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetCalibration()
}

func TestRecordModelCall(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		a.append(t, "s", longSession(10, 40)...)
		got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Budget: &contextdv1.Budget{Model: "m", MaxTokens: 100_000, Tokenizer: budget.TokenizerO200K}})
		if err != nil {
			t.Fatal(err)
		}
		before := a.read(t, "s")
		id, estimated := got.header.GetProjectionId(), got.header.GetBudget().GetProjectedTokens()
		if estimated < 1000 {
			t.Fatalf("the context has only %d tokens", estimated)
		}
		if c := a.record(t, &contextdv1.RecordModelCallRequest{SessionId: "s"}); c != 1 {
			t.Errorf("a call from no projection taught %v", c)
		}
		if c := a.record(t, &contextdv1.RecordModelCallRequest{SessionId: "s", ProjectionId: id, InputTokens: estimated}); c != 1 {
			t.Errorf("a prompt of the size that was estimated taught %v", c)
		}
		one := a.record(t, &contextdv1.RecordModelCallRequest{
			SessionId: "s", ProjectionId: id, InputTokens: estimated * 3, CacheReadTokens: estimated, CacheWriteTokens: 2 * estimated, OutputTokens: 5, StopReason: "stop",
		})
		if one != 1.15 {
			t.Errorf("a prompt three times as large taught %v; want the largest step", one)
		}
		two := a.record(t, &contextdv1.RecordModelCallRequest{SessionId: "s", ProjectionId: id, RejectedOverBudget: true})
		if two < one*1.15 || two > 2 {
			t.Errorf("a rejection turned %v into %v", one, two)
		}
		if c := a.record(t, &contextdv1.RecordModelCallRequest{SessionId: "s", ProjectionId: id, Model: "other", InputTokens: estimated}); c != 1 {
			t.Errorf("another model starts at %v", c)
		}
		if after := a.read(t, "s"); len(after) != len(before) {
			t.Errorf("the log grew from %d events to %d", len(before), len(after))
		}
		a.server.Drain()
		checkRefusal(t, recording(&contextdv1.RecordModelCallRequest{SessionId: "s"})(t.Context(), a),
			badInput{code: codes.Unavailable, reason: apierr.ReasonDraining})
	})
}
