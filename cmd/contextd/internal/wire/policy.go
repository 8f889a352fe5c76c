package wire

import (
	"fmt"
	"math"
	"path"
	"strings"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/policy"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize/prompt"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// PolicyToDomain converts the fields of a policy that a message sets; nil sets none. Errors name the field, with the
// path `at` before it.
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
		if out.ToolResults, err = part(t, toolResults, d.ToolResults); err != nil {
			return out, Under("tool_results", err)
		}
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
			NameTokens: d.Clipping.NameTokens,
			Exact:      true,
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
		out.Collapse = func(builtIn reduce.Collapse) reduce.Collapse { return collapse(s, builtIn) }
		out.Summaries = summaries(s)
		if err := checkSummarization(s); err != nil {
			return out, Under("summarization", err)
		}
	}
	if c := m.GetCache(); c != nil {
		if out.Cache, err = part(c, cache, d.Cache); err != nil {
			return out, Under("cache", err)
		}
	}
	if m != nil && m.RecallTool != nil {
		recall := reduce.Recall(m.GetRecallTool())
		out.Recall = &recall
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

// part converts the message of one part of a policy. Errors do not depend on the built-in policy that is
// filled in below it.
func part[M, T any](m M, convert func(M, T) (T, error), builtIn T) (policy.Part[T], error) {
	if _, err := convert(m, builtIn); err != nil {
		return nil, err
	}
	return func(builtIn T) T {
		converted, err := convert(m, builtIn)
		if err != nil {
			return builtIn
		}
		return converted
	}, nil
}

func toolResults(t *contextdv1.ToolResultRetention, d reduce.ToolResults) (out reduce.ToolResults, err error) {
	out = reduce.ToolResults{
		Default:       d.Default,
		Strict:        t.GetStrict(),
		EvictErrors:   t.GetEvictErrors(),
		OutlineTokens: uint64(t.GetOutlineTokens()),
	}
	if t.GetDefault() != nil {
		if out.Default, err = retention(t.GetDefault(), d.Default); err != nil {
			return out, Under("default", err)
		}
	}
	for tool, rule := range t.GetByTool() {
		if _, err := path.Match(tool, ""); err != nil {
			return out, invalid("by_tool", "%q is not a valid glob", tool)
		}
		if out.ByTool == nil {
			out.ByTool = make(map[string]reduce.Retention, len(t.GetByTool()))
		}
		if out.ByTool[tool], err = retention(rule, out.Default); err != nil {
			return out, Under(fmt.Sprintf("by_tool[%q]", tool), err)
		}
	}
	return out, nil
}

// retention converts a retention; if it has no measure, that of fallback applies.
func retention(r *contextdv1.Retention, fallback reduce.Retention) (reduce.Retention, error) {
	out := reduce.Retention{MinTokens: uint64(r.GetMinTokens())}
	switch keep := r.GetKeep().(type) {
	case *contextdv1.Retention_Turns:
		out.Turns = withOwn(keep.Turns)
	case *contextdv1.Retention_Last:
		if out.Last = keep.Last; keep.Last == 0 {
			// The domain's zero means that the rule is absent. Keeping the last 0 results still shows each
			// result once.
			out.Turns = withOwn(0)
		}
	case *contextdv1.Retention_NeverEvict:
		out.Never = true
	default:
		out.Turns, out.Last, out.Never = fallback.Turns, fallback.Last, fallback.Never
	}
	if out.Never && out.MinTokens > 0 {
		return out, invalid("min_tokens", "must be 0 where results are never evicted")
	}
	return out, nil
}

// withOwn converts the API's "turns after its own" to the domain's count, which includes the own turn.
func withOwn(turns uint32) uint32 {
	if turns == math.MaxUint32 {
		return turns
	}
	return turns + 1
}

func collapse(s *contextdv1.Summarization, d reduce.Collapse) reduce.Collapse {
	out := d
	if to := s.GetCollapseTo(); to > 0 {
		out.To, out.CutTo = to, 0
	}
	setIf(&out.KeepLastTurns, s.GetKeepLastTurns())
	setIf(&out.LedgerShare, s.GetLedgerShare())
	setIf(&out.WorkingSetShare, s.GetWorkingSetShare())
	setIf(&out.IndexShare, s.GetIndexShare())
	setIf(&out.SummaryShare, s.GetSummaryShare())
	setIf(&out.StartAt, s.GetStartAt())
	if !s.GetEnabled() {
		out.StartAt = 0
	}
	return out
}

// summaries converts the fields that say how summaries are written.
func summaries(s *contextdv1.Summarization) *decide.SummaryPolicy {
	return &decide.SummaryPolicy{
		Summarizer:     s.GetSummarizer(),
		Instructions:   InstructionsToDomain(s.GetInstructions(), s.GetInstructionsMode()),
		MaxInputTokens: uint64(s.GetMaxInputTokens()),
		Wait:           s.GetWait().AsDuration(),
	}
}

// checkSummarization refuses fields that have no effect if no summaries are written ahead of need.
func checkSummarization(s *contextdv1.Summarization) error {
	switch {
	case !s.GetEnabled() && s.GetStartAt() > 0:
		return invalid("start_at", "must be 0 where enabled is false")
	case !s.GetEnabled() && s.GetWait().AsDuration() > 0:
		return invalid("wait", "must be 0 where enabled is false")
	default:
		return CheckInstructions(s.GetInstructions(), s.GetInstructionsMode())
	}
}

// CheckInstructions refuses to replace the default instructions by an empty text.
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

func cache(c *contextdv1.CacheDiscipline, d reduce.Cache) (reduce.Cache, error) {
	if c.PaybackTurns != nil && c.GetPaybackTurns() == 0 {
		const reason = "must not be given where payback_turns is 0: only what is forced is evicted"
		switch {
		case c.GetEvictEveryTurns() > 0:
			return d, invalid("evict_every_turns", reason)
		case c.GetClearAtLeastTokens() > 0:
			return d, invalid("clear_at_least_tokens", reason)
		case c.GetCacheTtl() != nil:
			return d, invalid("cache_ttl", reason)
		case c.GetPrices() != nil:
			return d, invalid("prices", reason)
		}
		return reduce.Cache{}, nil
	}
	setIf(&d.EvictEveryTurns, c.GetEvictEveryTurns())
	setIf(&d.ClearAtLeastTokens, uint64(c.GetClearAtLeastTokens()))
	setIf(&d.TTL, c.GetCacheTtl().AsDuration())
	setIf(&d.PaybackTurns, c.GetPaybackTurns())
	if p := c.GetPrices(); p != nil {
		d.Prices = reduce.PricesOf(budget.Prices{CacheRead: p.GetCacheRead(), CacheWrite: p.GetCacheWrite(), MinCachedTokens: uint64(p.GetMinCachedTokens())})
	}
	return d, nil
}

func setIf[T comparable](dst *T, v T) {
	var zero T
	if v != zero {
		*dst = v
	}
}
