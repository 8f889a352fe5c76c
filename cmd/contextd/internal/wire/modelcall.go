package wire

import (
	"github.com/contextd/contextd/internal/explain"
	"github.com/contextd/contextd/internal/records"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// CallToDomain converts the report of a model call. It refuses more cached tokens than input tokens. A client
// that reports cached tokens separately from its input would make the calibration conclude that estimates are
// far too high.
func CallToDomain(r *contextdv1.RecordModelCallRequest) (records.Call, error) {
	if err := checkNames(
		named{"projection_id", r.GetProjectionId()},
		named{"model", r.GetModel()},
		named{"stop_reason", r.GetStopReason()},
	); err != nil {
		return records.Call{}, err
	}
	if cached := r.GetCacheReadTokens() + r.GetCacheWriteTokens(); cached > r.GetInputTokens() {
		return records.Call{}, invalid("input_tokens", "%d are less than the %d cached ones, which are among them", r.GetInputTokens(), cached)
	}
	return records.Call{
		SessionID:        r.GetSessionId(),
		ProjectionID:     r.GetProjectionId(),
		Model:            r.GetModel(),
		InputTokens:      r.GetInputTokens(),
		CacheReadTokens:  r.GetCacheReadTokens(),
		CacheWriteTokens: r.GetCacheWriteTokens(),
		OutputTokens:     r.GetOutputTokens(),
		StopReason:       r.GetStopReason(),
		Rejected:         r.GetRejectedOverBudget(),
		IdempotencyKey:   r.GetIdempotencyKey(),
	}, nil
}

// CallToProto converts a recorded call.
func CallToProto(c records.ModelCall) *contextdv1.ModelCall {
	return &contextdv1.ModelCall{
		Number:              c.Number,
		ProjectionId:        c.ProjectionID,
		Model:               c.Model,
		InputTokens:         c.InputTokens,
		CacheReadTokens:     c.CacheReadTokens,
		CacheWriteTokens:    c.CacheWriteTokens,
		OutputTokens:        c.OutputTokens,
		StopReason:          c.StopReason,
		RejectedOverBudget:  c.Rejected,
		EstimatedTokens:     c.EstimatedTokens,
		Calibration:         c.Calibration.Factor(),
		SummaryId:           c.InForce.SummaryID,
		SummaryVersion:      c.InForce.SummaryVersion,
		CollapsedThroughSeq: uint64(c.InForce.CollapsedThrough),
		EvictedAsOfSeq:      uint64(c.InForce.EvictedAsOf),
		Time:                timeToProto(c.Time),
	}
}

// ExplanationToProto converts the explanation of a recorded call.
func ExplanationToProto(e explain.Explanation) *contextdv1.ExplainCallResponse {
	out := &contextdv1.ExplainCallResponse{Seen: e.Seen}
	if e.Call.Number > 0 {
		out.Call = CallToProto(e.Call)
	}
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
