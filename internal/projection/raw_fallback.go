package projection

import "github.com/contextd/contextd/internal/reduce"

// rawFallback does everything that a policy does or, where signatures keep the policy
// from any of it, nothing. What was decided before stays decided, and is shown again
// with the next request in which nothing is blocked.
type rawFallback struct{ Policy }

func (p rawFallback) Apply(v reduce.View, turns uint32, before State) Applied {
	got := p.Policy.Apply(v, turns, before)
	if !got.SafetyBlocked {
		return got
	}
	step := reduce.Step{TokensBefore: v.Tokens(), TokensAfter: v.Tokens(), Note: got.Reason + "; everything is shown, as raw_fallback asks"}
	if got.Step != nil {
		step.Reducer = got.Step.Reducer
	}
	return Applied{View: v, State: before, Step: &step, RootsConsulted: got.RootsConsulted, SafetyBlocked: true, Reason: got.Reason}
}

// WithRoots is that of the policy, where it takes roots.
func (p rawFallback) WithRoots(o Options) Policy {
	if r, ok := p.Policy.(Rooted); ok {
		return rawFallback{r.WithRoots(o)}
	}
	return p
}
