package wire_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func aCall() records.Call {
	return records.Call{
		SessionID: "s", ProjectionID: "p9-0001", Model: "m", InputTokens: 100, CacheReadTokens: 60, CacheWriteTokens: 40,
		OutputTokens: 7, StopReason: "end_turn", Rejected: true,
	}
}

func TestCallToDomain(t *testing.T) {
	got, err := wire.CallToDomain(&contextdv1.RecordModelCallRequest{
		SessionId: "s", ProjectionId: "p9-0001", Model: "m", InputTokens: 100, CacheReadTokens: 60, CacheWriteTokens: 40,
		OutputTokens: 7, StopReason: "end_turn", RejectedOverBudget: true,
	})
	if err != nil || got != aCall() {
		t.Errorf("got %+v (%v)", got, err)
	}
	for field, r := range map[string]*contextdv1.RecordModelCallRequest{
		"input_tokens":  {InputTokens: 99, CacheReadTokens: 60, CacheWriteTokens: 40},
		"projection_id": {ProjectionId: "p\x00"},
		"model":         {Model: "\x00"},
		"stop_reason":   {StopReason: "stop\x00"},
	} {
		_, err := wire.CallToDomain(r)
		var invalid *eventlog.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%v: %v, want one about %s", r, err, field)
		}
	}
}

func TestCallToProto(t *testing.T) {
	got := wire.CallToProto(records.ModelCall{
		Call: aCall(), Number: 3, EstimatedTokens: 90, Tokenizer: "o200k_base", BudgetModel: "b", Fingerprint: "f", After: "p9-0002",
		Time:        time.Unix(5, 6),
		InForce:     records.InForce{SummaryID: "s1", SummaryVersion: 2, CollapsedThrough: 5, EvictedAsOf: 6},
		Calibration: budget.Calibration{Average: 1_250_000},
	})
	want := &contextdv1.ModelCall{
		Number: 3, ProjectionId: "p9-0001", Model: "m", InputTokens: 100, CacheReadTokens: 60, CacheWriteTokens: 40, OutputTokens: 7,
		StopReason: "end_turn", RejectedOverBudget: true, EstimatedTokens: 90, Calibration: 1.25,
		SummaryId: "s1", SummaryVersion: 2, CollapsedThroughSeq: 5, EvictedAsOfSeq: 6,
		Time: &timestamppb.Timestamp{Seconds: 5, Nanos: 6},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("call (-want +got):\n%s", diff)
	}
	fields := want.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); !want.ProtoReflect().Has(f) {
			t.Errorf("the test leaves out %s", f.Name())
		}
	}
}
