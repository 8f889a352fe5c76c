package wire

import (
	"math"
	"path"

	"github.com/contextd/contextd/cmd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/reduce"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// overlay lays a policy over a base: each part that is present takes the whole
// place of the same part. Errors name the field from the policy on.
func overlay(base assemble.Policy, p *contextdv1.Policy) (assemble.Policy, error) {
	out := base
	r, d := &out.Reduction, reduce.DefaultPolicy()
	if t := p.GetToolResults(); t != nil {
		converted, err := toolResults(t, d.ToolResults)
		if err != nil {
			return assemble.Policy{}, Under("tool_results", err)
		}
		r.ToolResults = converted
	}
	if p.GetDuplicates() != nil {
		r.Duplicates = p.GetDuplicates().GetEnabled()
	}
	if c := p.GetClipping(); c != nil {
		r.Clipping = reduce.Clipping{
			MaxTokens:  uint64(c.GetMaxTokens()),
			HeadTokens: uint64(c.GetHeadTokens()),
			TailTokens: uint64(c.GetTailTokens()),
		}
	}
	if t := p.GetThinking(); t != nil {
		r.Thinking = reduce.Thinking{}
		if t.KeepTurns != nil {
			keep := withOwn(t.GetKeepTurns())
			r.Thinking.KeepTurns = &keep
		}
	}
	if w := p.GetWindow(); w != nil {
		r.Window = reduce.Window{
			MaxTurns:     w.GetMaxTurns(),
			MaxTokens:    uint64(w.GetMaxTokens()),
			StrictAnchor: w.GetStrictAnchor(),
		}
	}
	if s := p.GetSummarization(); s != nil {
		converted, err := collapse(s, d.Collapse)
		if err != nil {
			return assemble.Policy{}, Under("summarization", err)
		}
		r.Collapse = converted
	}
	if c := p.GetCache(); c != nil {
		r.Cache = cache(c, d.Cache)
	}
	if pp := p.GetProjection(); pp != nil {
		if err := projectionPolicy(pp); err != nil {
			return assemble.Policy{}, Under("projection", err)
		}
		out.Projection, out.Reason = pp.GetPolicy(), pp.GetReason()
	}
	return out, nil
}

func toolResults(t *contextdv1.ToolResultRetention, d reduce.ToolResults) (reduce.ToolResults, error) {
	out := reduce.ToolResults{
		Default:       d.Default,
		EvictErrors:   t.GetEvictErrors(),
		OutlineTokens: uint64(t.GetOutlineTokens()),
	}
	if t.GetDefault() != nil {
		out.Default = retention(t.GetDefault(), d.Default)
	}
	for tool, rule := range t.GetByTool() {
		if _, err := path.Match(tool, ""); err != nil {
			return out, invalid("by_tool", "%q is not a valid glob", tool)
		}
		if out.ByTool == nil {
			out.ByTool = make(map[string]reduce.Retention, len(t.GetByTool()))
		}
		out.ByTool[tool] = retention(rule, out.Default)
	}
	return out, nil
}

// retention takes an absent measure from fallback.
func retention(r *contextdv1.Retention, fallback reduce.Retention) reduce.Retention {
	out := reduce.Retention{MinTokens: uint64(r.GetMinTokens())}
	switch keep := r.GetKeep().(type) {
	case *contextdv1.Retention_Turns:
		out.Turns = withOwn(keep.Turns)
	case *contextdv1.Retention_Last:
		if out.Last = keep.Last; keep.Last == 0 {
			// The domain's zero is "no such rule". None at all still means that the
			// model sees each result once.
			out.Turns = withOwn(0)
		}
	case *contextdv1.Retention_NeverEvict:
		out.Never = true
	default:
		out.Turns, out.Last, out.Never = fallback.Turns, fallback.Last, fallback.Never
	}
	return out
}

// withOwn turns "turns after its own" into the domain's count, which includes
// the turn itself.
func withOwn(turns uint32) uint32 {
	if turns == math.MaxUint32 {
		return turns
	}
	return turns + 1
}

func collapse(s *contextdv1.Summarization, d reduce.Collapse) (reduce.Collapse, error) {
	switch {
	case s.GetSummarizer() != "":
		return d, invalid("summarizer", "%q is not a summarizer of the daemon's configuration", s.GetSummarizer())
	case s.GetEnabled():
		return d, &UnsupportedError{"enabled", "summaries are not built yet; collapsed spans are named by their ledger and index"}
	case s.GetWait().AsDuration() > 0:
		return d, &UnsupportedError{"wait", "summaries are not built yet, so there is nothing to wait for"}
	}
	out := d
	setIf(&out.To, s.GetCollapseTo())
	setIf(&out.KeepLastTurns, s.GetKeepLastTurns())
	setIf(&out.LedgerShare, s.GetLedgerShare())
	setIf(&out.IndexShare, s.GetIndexShare())
	return out, nil
}

func cache(c *contextdv1.CacheDiscipline, d reduce.Cache) reduce.Cache {
	out := d
	setIf(&out.EvictEveryTurns, c.GetEvictEveryTurns())
	setIf(&out.ClearAtLeastTokens, uint64(c.GetClearAtLeastTokens()))
	setIf(&out.TTL, c.GetCacheTtl().AsDuration())
	if c.PaybackTurns != nil {
		out.PaybackTurns = c.GetPaybackTurns()
		if out.PaybackTurns == 0 {
			// Nothing pays back within no turns at all.
			out.EvictEveryTurns, out.ClearAtLeastTokens = 0, 0
		}
	}
	return out
}

func setIf[T comparable](dst *T, v T) {
	var zero T
	if v != zero {
		*dst = v
	}
}

func projectionPolicy(p *contextdv1.ProjectionPolicy) error {
	switch p.GetPolicy() {
	case "", "raw":
		return nil
	default:
		return &UnsupportedError{"policy", "projection policy " + p.GetPolicy() + " is not built yet; raw is"}
	}
}
