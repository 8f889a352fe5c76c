package wire

import (
	"github.com/contextd/contextd/internal/assemble"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// ExplanationToProto converts the explanation of a recorded call.
func ExplanationToProto(e assemble.Explanation) *contextdv1.ExplainCallResponse {
	out := &contextdv1.ExplainCallResponse{Call: CallToProto(e.Call), Seen: e.Seen}
	if e.Projection != nil {
		out.Projection = ProjectionToProto(*e.Projection, e.Pointers)
	}
	for _, s := range e.Sightings {
		out.Sightings = append(out.Sightings, &contextdv1.Sighting{
			Seq: uint64(s.Seq), Block: uint32(s.Block), Shown: string(s.Shown), Seen: s.Seen, Reason: s.Reason, Pointer: s.Pointer,
		})
	}
	return out
}
