package wire

import (
	"fmt"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/projection"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// projectionPolicy converts a projection policy. It refuses fields that the chosen policy ignores, since
// their setter expects an effect. Errors name the field.
func projectionPolicy(p *contextdv1.ProjectionPolicy) (projection.Options, error) {
	o := projection.Options{
		Name:                p.GetPolicy(),
		IgnoreSignatures:    p.GetIgnoreProviderSignatures(),
		RawFallback:         p.GetRawFallback(),
		KeepLast:            p.GetKeepLast(),
		Summary:             p.GetSummary(),
		RootWindow:          p.RootWindow,
		MinChars:            p.MinChars,
		ClearAtLeastTokens:  p.ClearAtLeastTokens,
		Roots:               slices.Clone(p.GetRoots()),
		ActivePlan:          p.GetActivePlan(),
		Scratchpad:          p.GetScratchpad(),
		PendingToolArgs:     slices.Clone(p.GetPendingToolArgs()),
		UnresolvedFindings:  slices.Clone(p.GetUnresolvedFindings()),
		RequireWriteBarrier: p.GetRequireWriteBarrier(),
		WriteBarrierRefs:    slices.Clone(p.GetWriteBarrierRefs()),
		Expression:          p.GetExpression(),
		Scrub:               p.GetScrub(),
	}
	for _, f := range projectionFields(p) {
		if f.set && !slices.Contains(f.of, o.PolicyName()) {
			return projection.Options{}, invalid(f.name, "must be empty: %s has no use for it, unlike %s", o.PolicyName(), strings.Join(f.of, ", "))
		}
	}
	if p.GetSummary() != "" && strings.TrimSpace(p.GetSummary()) == "" {
		return projection.Options{}, invalid("summary", "must hold more than white space")
	}
	if len(p.GetWriteBarrierRefs()) > 0 && !p.GetRequireWriteBarrier() {
		return projection.Options{}, invalid("write_barrier_refs", "must be empty without require_write_barrier")
	}
	for i, ref := range p.GetWriteBarrierRefs() {
		if strings.TrimSpace(ref) == "" {
			return projection.Options{}, invalid(fmt.Sprintf("write_barrier_refs[%d]", i), "must hold more than white space")
		}
	}
	return o, nil
}

// projectionField is a field that only some projection policies use.
type projectionField struct {
	name string
	set  bool
	of   []string
}

func projectionFields(p *contextdv1.ProjectionPolicy) []projectionField {
	gc, prefix := []string{projection.ReachabilityGC}, []string{projection.SummaryPrefix}
	drop := []string{projection.CleanToolRepair, projection.SquashFailed, projection.SummaryPrefix, projection.ReachabilityGC, projection.CustomExpression}
	return []projectionField{
		{"keep_last", p.GetKeepLast() > 0, drop},
		{"ignore_provider_signatures", p.GetIgnoreProviderSignatures(), drop},
		{"raw_fallback", p.GetRawFallback(), drop},
		{"summary", p.GetSummary() != "", prefix},
		{"root_window", p.RootWindow != nil, gc},
		{"min_chars", p.MinChars != nil, gc},
		{"clear_at_least_tokens", p.ClearAtLeastTokens != nil, gc},
		{"roots", len(p.GetRoots()) > 0, gc},
		{"active_plan", p.GetActivePlan() != "", gc},
		{"scratchpad", p.GetScratchpad() != "", gc},
		{"pending_tool_args", len(p.GetPendingToolArgs()) > 0, gc},
		{"unresolved_findings", len(p.GetUnresolvedFindings()) > 0, gc},
		{"require_write_barrier", p.GetRequireWriteBarrier(), gc},
		{"write_barrier_refs", len(p.GetWriteBarrierRefs()) > 0, gc},
		{"expression", p.GetExpression() != "", []string{projection.CustomExpression}},
	}
}
