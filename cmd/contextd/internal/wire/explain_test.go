package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/explain"
	"github.com/contextd/contextd/internal/pointers"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func TestExplanationToProto(t *testing.T) {
	pointer := records.Pointer{Seq: 4, Block: 1, Kind: reduce.Stubbed, Reducer: "tool_results", Reason: "old", Reclaimed: 9}
	explanation := explain.Explanation{
		Call:       records.ModelCall{Call: aCall(), Number: 3},
		Projection: &records.Projection{ID: "p9-0001", AsOf: 9, Pointers: []records.Pointer{pointer}},
		Pointers:   []pointers.Facts{{Pointer: pointer, Name: "ctx:4.1"}},
		Seen:       true,
		Sightings: []explain.Sighting{
			{Shown: explain.ShownLedger, Seen: true},
			{Seq: 4, Block: 1, Shown: explain.ShownStubbed, Seen: true, Reason: "tool_results: old", Pointer: "ctx:4.1"},
		},
	}
	got := wire.ExplanationToProto(explanation)
	want := &contextdv1.ExplainCallResponse{
		Call:       wire.CallToProto(explanation.Call),
		Projection: wire.ProjectionToProto(*explanation.Projection, explanation.Pointers),
		Seen:       true,
		Sightings: []*contextdv1.Sighting{
			{Shown: "ledger", Seen: true},
			{Seq: 4, Block: 1, Shown: "stubbed", Seen: true, Reason: "tool_results: old", Pointer: "ctx:4.1"},
		},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
	if len(got.GetProjection().GetRedactionPointers()) != 1 {
		t.Error("the projection lacks its pointers")
	}
	if got := wire.ExplanationToProto(explain.Explanation{}); got.GetProjection() != nil {
		t.Errorf("a call from no projection has %v", got.GetProjection())
	}
}
