package wire

import (
	"slices"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// BudgetToDomain converts the first budget of a chain that is not nil: the request's, else the session's,
// else the daemon's. Model and tokenizer come from the first budget that sets either, so that a session keeps
// its gauge unless a request names another.
func BudgetToDomain(chain ...*contextdv1.Budget) budget.Spec {
	var out budget.Spec
	if at := slices.IndexFunc(chain, func(b *contextdv1.Budget) bool { return b != nil }); at >= 0 {
		out = specOf(chain[at])
	}
	for _, b := range chain {
		if b.GetModel() != "" || b.GetTokenizer() != "" {
			out.Model, out.Tokenizer = b.GetModel(), b.GetTokenizer()
			break
		}
	}
	return out
}

func specOf(b *contextdv1.Budget) budget.Spec {
	out := budget.Spec{
		MaxTokens:        b.GetMaxTokens(),
		OutputReserve:    b.GetOutputReserve(),
		InjectionReserve: b.GetInjectionReserve(),
		OverheadTokens:   b.GetOverheadTokens(),
		SafetyMargin:     b.SafetyMargin,
		YellowAt:         b.GetYellowAt(),
		RedAt:            b.GetRedAt(),
	}
	for tier, fraction := range b.GetTierCaps() {
		if out.TierCaps == nil {
			out.TierCaps = make(map[budget.Tier]float64, len(b.GetTierCaps()))
		}
		out.TierCaps[budget.Tier(tier)] = fraction
	}
	return out
}

var statesToProto = map[budget.State]contextdv1.BudgetState{
	budget.Green:  contextdv1.BudgetState_BUDGET_STATE_GREEN,
	budget.Yellow: contextdv1.BudgetState_BUDGET_STATE_YELLOW,
	budget.Red:    contextdv1.BudgetState_BUDGET_STATE_RED,
}

// BudgetReportToProto converts a report.
func BudgetReportToProto(r assemble.BudgetReport) *contextdv1.BudgetReport {
	out := &contextdv1.BudgetReport{
		State:           statesToProto[r.State],
		TargetTokens:    r.Target,
		RawTokens:       r.Raw,
		ProjectedTokens: r.Projected,
		Tokenizer:       r.Tokenizer,
		Calibration:     r.Calibration,
	}
	for tier, tokens := range r.Tiers {
		if out.TierTokens == nil {
			out.TierTokens = make(map[string]uint64, len(r.Tiers))
		}
		out.TierTokens[string(tier)] = tokens
	}
	return out
}
