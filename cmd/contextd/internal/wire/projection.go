package wire

import (
	"slices"

	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/pointers"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// BriefProjectionToProto converts a record without the parts that grow with its session.
func BriefProjectionToProto(r records.Projection) *contextdv1.Projection {
	kept := r.Kept.Len()
	redacted := r.Redacted.Len()
	dropped := r.Dropped.Len()
	r.Kept, r.Redacted, r.Dropped = nil, nil, nil
	out := RecordedToProto(r, nil)
	out.KeptCount, out.RedactedCount, out.DroppedCount = uint32(kept+redacted), uint32(redacted), uint32(dropped)
	return out
}

// RecordedToProto converts a recorded projection; facts describe its pointers.
func RecordedToProto(r records.Projection, facts []pointers.Facts) *contextdv1.Projection {
	out := ProjectionToProto(r, facts)
	out.Budget, out.MessageCount = BudgetReportToProto(assemble.Recorded(r)), uint32(r.MessageCount)
	if s := r.Shared; s != nil {
		out.Cache = &contextdv1.CacheReport{StableMessages: uint32(s.Messages), StableTokens: s.Tokens, BrokenBy: s.BrokenBy}
	}
	return out
}

// ProjectionToProto converts a projection that was just decided; facts describe its pointers.
func ProjectionToProto(r records.Projection, facts []pointers.Facts) *contextdv1.Projection {
	out := &contextdv1.Projection{
		ProjectionId: r.ID,
		Policy:       r.Policy,
		Reason:       why(r),
		Format:       formatToProto(r.Budget.Format),
		PrefixHash:   r.PrefixHash,
		AsOfSeq:      uint64(r.AsOf),
		// The record does not list events that are shown in part as kept; the API does.
		KeptSeqs:                   merged(seqs(r.Kept), seqs(r.Redacted)),
		DroppedSeqs:                seqs(r.Dropped),
		RedactedSeqs:               seqs(r.Redacted),
		ReclaimedTokens:            r.ReclaimedTokens,
		ReclaimedChars:             r.ReclaimedChars,
		RespectsProviderSignatures: !r.Projection.IgnoreSignatures,
		ProviderSafetyBlocked:      r.SafetyBlocked,
		RootsConsulted:             r.RootsConsulted,
		PolicyFingerprint:          r.Fingerprint,
		SummaryId:                  r.After.Summary,
		Time:                       timeToProto(r.Time),
	}
	out.KeptCount = uint32(len(out.GetKeptSeqs()))
	out.DroppedCount = uint32(len(out.GetDroppedSeqs()))
	out.RedactedCount = uint32(len(out.GetRedactedSeqs()))
	for _, p := range facts {
		out.RedactionPointers = append(out.RedactionPointers, &contextdv1.RedactionPointer{
			Pointer:         p.Name,
			Policy:          p.Reducer,
			SourceSeq:       uint64(p.Seq),
			SourceBlock:     uint32(p.Block),
			ContentHash:     p.ContentHash,
			ContentChars:    uint64(p.Chars),
			ReclaimedTokens: p.Reclaimed,
			CallId:          p.CallID,
			ToolName:        p.ToolName,
			Reason:          p.Reason,
			Decision:        decisions[p.Kind],
		})
	}
	for _, s := range r.Steps {
		out.Steps = append(out.Steps, &contextdv1.ReducerStep{
			Reducer:      s.Reducer,
			TokensBefore: s.TokensBefore,
			TokensAfter:  s.TokensAfter,
			Touched:      uint32(s.Touched),
			Note:         s.Note,
		})
	}
	return out
}

// ShadowToProto converts a shadow projection; nil if there is none.
func ShadowToProto(s *records.Shadow) *contextdv1.ShadowProjection {
	if s == nil {
		return nil
	}
	return &contextdv1.ShadowProjection{
		Policy: s.Policy, Tokens: s.Tokens, MessageCount: uint32(s.Messages), StableTokens: s.StableTokens,
		BrokenBy: s.BrokenBy, OverBudget: s.OverBudget,
	}
}

// why returns why the projection policy did not do all that was asked, or else why the caller chose it.
func why(r records.Projection) string {
	if r.Reverted != "" {
		return r.Reverted
	}
	return r.Reason
}

// decisions are the API's names for what was done to a block.
var decisions = map[reduce.EditKind]string{
	reduce.Stubbed: "stubbed", reduce.Clipped: "clipped", reduce.Omitted: "omitted", reduce.Redacted: "redacted",
}

func seqs(ranges eventlog.Ranges) []uint64 {
	n := 0
	for _, r := range ranges {
		n += int(r.To - r.From + 1)
	}
	if n == 0 {
		return nil
	}
	out := make([]uint64, 0, n)
	for _, r := range ranges {
		for seq := r.From; seq <= r.To; seq++ {
			out = append(out, uint64(seq))
		}
	}
	return out
}

// merged merges two ascending lists.
func merged(a, b []uint64) []uint64 {
	if len(b) == 0 {
		return a
	}
	out := slices.Concat(a, b)
	slices.Sort(out)
	return out
}
