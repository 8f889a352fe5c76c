package wire

import (
	"math"
	"path"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize/prompt"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// overlay lays a policy over a base: each part that is present takes the whole
// place of the same part. Errors name the field from the policy on.
func (p Policies) overlay(base assemble.Policy, m *contextdv1.Policy) (assemble.Policy, error) {
	out := base
	r, d := &out.Reduction, reduce.DefaultPolicy()
	if t := m.GetToolResults(); t != nil {
		converted, err := toolResults(t, d.ToolResults)
		if err != nil {
			return assemble.Policy{}, Under("tool_results", err)
		}
		r.ToolResults = converted
	}
	if m.GetDuplicates() != nil {
		r.Duplicates = m.GetDuplicates().GetEnabled()
	}
	if c := m.GetClipping(); c != nil {
		r.Clipping = reduce.Clipping{
			MaxTokens:  uint64(c.GetMaxTokens()),
			HeadTokens: uint64(c.GetHeadTokens()),
			TailTokens: uint64(c.GetTailTokens()),
		}
	}
	if t := m.GetThinking(); t != nil {
		r.Thinking = reduce.Thinking{}
		if t.KeepTurns != nil {
			keep := withOwn(t.GetKeepTurns())
			r.Thinking.KeepTurns = &keep
		}
	}
	if w := m.GetWindow(); w != nil {
		r.Window = reduce.Window{
			MaxTurns:     w.GetMaxTurns(),
			MaxTokens:    uint64(w.GetMaxTokens()),
			StrictAnchor: w.GetStrictAnchor(),
		}
	}
	if s := m.GetSummarization(); s != nil {
		r.Collapse = collapse(s, d.Collapse)
		converted, err := p.summaries(s)
		if err != nil {
			return assemble.Policy{}, Under("summarization", err)
		}
		out.Summaries = converted
	}
	if c := m.GetCache(); c != nil {
		r.Cache = cache(c, d.Cache)
	}
	if pp := m.GetProjection(); pp != nil {
		options, err := projectionPolicy(pp)
		if err != nil {
			return assemble.Policy{}, Under("projection", err)
		}
		out.Projection, out.Reason = options, pp.GetReason()
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

func collapse(s *contextdv1.Summarization, d reduce.Collapse) reduce.Collapse {
	out := d
	setIf(&out.To, s.GetCollapseTo())
	setIf(&out.KeepLastTurns, s.GetKeepLastTurns())
	setIf(&out.LedgerShare, s.GetLedgerShare())
	setIf(&out.IndexShare, s.GetIndexShare())
	setIf(&out.SummaryShare, s.GetSummaryShare())
	setIf(&out.StartAt, s.GetStartAt())
	if !s.GetEnabled() {
		out.StartAt = 0
	}
	return out
}

// summaries says how summaries are made.
func (p Policies) summaries(s *contextdv1.Summarization) (assemble.SummaryPolicy, error) {
	out := assemble.SummaryPolicy{
		Summarizer:     p.summarizers.Default,
		Instructions:   InstructionsToDomain(s.GetInstructions(), s.GetInstructionsMode()),
		MaxInputTokens: uint64(s.GetMaxInputTokens()),
		Wait:           s.GetWait().AsDuration(),
	}
	if name := s.GetSummarizer(); name != "" {
		if !slices.Contains(p.summarizers.Names, name) {
			return out, invalid("summarizer", "%q is not a summarizer of the daemon's configuration; it knows %s", name, strings.Join(p.summarizers.Names, ", "))
		}
		out.Summarizer = name
	}
	return out, CheckInstructions(s.GetInstructions(), s.GetInstructionsMode())
}

// CheckInstructions refuses to replace the default instructions by nothing.
func CheckInstructions(text, mode string) error {
	if prompt.Mode(mode) == prompt.Replace && strings.TrimSpace(text) == "" {
		return invalid("instructions", "must not be empty where instructions_mode is replace")
	}
	return nil
}

// InstructionsToDomain converts what a summarizer is told.
func InstructionsToDomain(text, mode string) prompt.Instructions {
	return prompt.Instructions{Text: text, Mode: prompt.Mode(mode)}
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
