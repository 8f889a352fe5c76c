package wire

import (
	"math"
	"path"
	"strings"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/policy"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize/prompt"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// PolicyToDomain converts what a message says of a policy; nil says nothing. Errors name
// the field, which is under at.
func PolicyToDomain(m *contextdv1.Policy, at string) (policy.Overlay, error) {
	out, err := overlay(m)
	if err != nil {
		return policy.Overlay{}, Under(at, err)
	}
	return out, nil
}

func overlay(m *contextdv1.Policy) (out policy.Overlay, err error) {
	d := reduce.DefaultPolicy()
	out.Name = m.GetName()
	if t := m.GetToolResults(); t != nil {
		converted, err := toolResults(t, d.ToolResults)
		if err != nil {
			return out, Under("tool_results", err)
		}
		out.ToolResults = &converted
	}
	if m.GetDuplicates() != nil {
		enabled := m.GetDuplicates().GetEnabled()
		out.Duplicates = &enabled
	}
	if c := m.GetClipping(); c != nil {
		out.Clipping = &reduce.Clipping{
			MaxTokens:  uint64(c.GetMaxTokens()),
			HeadTokens: uint64(c.GetHeadTokens()),
			TailTokens: uint64(c.GetTailTokens()),
		}
	}
	if t := m.GetThinking(); t != nil {
		out.Thinking = &reduce.Thinking{}
		if t.KeepTurns != nil {
			keep := withOwn(t.GetKeepTurns())
			out.Thinking.KeepTurns = &keep
		}
	}
	if w := m.GetWindow(); w != nil {
		out.Window = &reduce.Window{
			MaxTurns:     w.GetMaxTurns(),
			MaxTokens:    uint64(w.GetMaxTokens()),
			StrictAnchor: w.GetStrictAnchor(),
		}
	}
	if s := m.GetSummarization(); s != nil {
		converted := collapse(s, d.Collapse)
		out.Collapse, out.Summaries = &converted, summaries(s)
		if err := CheckInstructions(s.GetInstructions(), s.GetInstructionsMode()); err != nil {
			return out, Under("summarization", err)
		}
	}
	if c := m.GetCache(); c != nil {
		converted := cache(c, d.Cache)
		out.Cache = &converted
	}
	if pp := m.GetProjection(); pp != nil {
		options, err := projectionPolicy(pp)
		if err != nil {
			return out, Under("projection", err)
		}
		out.Projection, out.Reason = &options, pp.GetReason()
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
func summaries(s *contextdv1.Summarization) *assemble.SummaryPolicy {
	return &assemble.SummaryPolicy{
		Summarizer:     s.GetSummarizer(),
		Instructions:   InstructionsToDomain(s.GetInstructions(), s.GetInstructionsMode()),
		MaxInputTokens: uint64(s.GetMaxInputTokens()),
		Wait:           s.GetWait().AsDuration(),
	}
}

// CheckInstructions refuses to replace the default instructions by nothing.
func CheckInstructions(text, mode string) error {
	if prompt.Mode(mode) == prompt.Replace && strings.TrimSpace(text) == "" {
		return invalid("instructions", "must not be empty where instructions_mode is replace")
	}
	return nil
}

// InstructionsToDomain converts the instructions for a summarizer.
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
