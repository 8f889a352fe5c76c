package wire

import (
	"math"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/reduce"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// PolicyFromDomain converts a policy, without its projection, to a message that sets all fields. One limit of
// clipping has no field in the message; it is the default, so it stays absent. The depth of cuts that pay has no field
// either: a policy that is read from the message has collapse_to for all cuts.
func PolicyFromDomain(r reduce.Policy, s decide.SummaryPolicy) *contextdv1.Policy {
	out := &contextdv1.Policy{
		ToolResults: &contextdv1.ToolResultRetention{
			Default:       retentionBack(r.ToolResults.Default),
			EvictErrors:   r.ToolResults.EvictErrors,
			OutlineTokens: uint32(r.ToolResults.OutlineTokens),
			Strict:        r.ToolResults.Strict,
		},
		Duplicates: &contextdv1.DuplicateResults{Enabled: r.Duplicates},
		Thinking:   &contextdv1.ThinkingRetention{},
		Window: &contextdv1.DialogueWindow{
			MaxTurns:     r.Window.MaxTurns,
			MaxTokens:    uint32(r.Window.MaxTokens),
			StrictAnchor: r.Window.StrictAnchor,
		},
		Summarization: &contextdv1.Summarization{
			Enabled:          r.Collapse.StartAt > 0,
			Summarizer:       s.Summarizer,
			StartAt:          r.Collapse.StartAt,
			CollapseTo:       r.Collapse.To,
			KeepLastTurns:    r.Collapse.KeepLastTurns,
			MaxInputTokens:   uint32(s.MaxInputTokens),
			Instructions:     s.Instructions.Text,
			LedgerShare:      r.Collapse.LedgerShare,
			WorkingSetShare:  r.Collapse.WorkingSetShare,
			IndexShare:       r.Collapse.IndexShare,
			SummaryShare:     r.Collapse.SummaryShare,
			InstructionsMode: string(s.Instructions.Mode),
		},
		Cache: &contextdv1.CacheDiscipline{PaybackTurns: proto.Uint32(0)},
	}
	if r.Recall != "" {
		out.RecallTool = proto.String(string(r.Recall))
	}
	for tool, rule := range r.ToolResults.ByTool {
		if out.ToolResults.ByTool == nil {
			out.ToolResults.ByTool = make(map[string]*contextdv1.Retention, len(r.ToolResults.ByTool))
		}
		out.ToolResults.ByTool[tool] = retentionBack(rule)
	}
	if c := r.Clipping; c.Exact {
		out.Clipping = &contextdv1.ResultClipping{MaxTokens: uint32(c.MaxTokens), HeadTokens: uint32(c.HeadTokens), TailTokens: uint32(c.TailTokens)}
	}
	if keep := r.Thinking.KeepTurns; keep != nil {
		out.Thinking.KeepTurns = proto.Uint32(withoutOwn(*keep))
	}
	if s.Wait > 0 {
		out.Summarization.Wait = durationpb.New(s.Wait)
	}
	if c := r.Cache; c != (reduce.Cache{}) {
		out.Cache = &contextdv1.CacheDiscipline{
			EvictEveryTurns:    c.EvictEveryTurns,
			ClearAtLeastTokens: uint32(c.ClearAtLeastTokens),
			CacheTtl:           durationpb.New(c.TTL),
			PaybackTurns:       proto.Uint32(c.PaybackTurns),
		}
		if p := c.Prices; p != (reduce.Prices{}) {
			thousandths := func(n uint64) float64 { return float64(n) / 1000 }
			out.Cache.Prices = &contextdv1.CachePrices{CacheRead: thousandths(p.CacheRead), CacheWrite: thousandths(p.CacheWrite), MinCachedTokens: uint32(p.MinCachedTokens)}
		}
	}
	return out
}

func retentionBack(r reduce.Retention) *contextdv1.Retention {
	out := &contextdv1.Retention{MinTokens: uint32(r.MinTokens)}
	switch {
	case r.Never:
		out.Keep = &contextdv1.Retention_NeverEvict{NeverEvict: true}
	case r.Last > 0:
		out.Keep = &contextdv1.Retention_Last{Last: r.Last}
	default:
		out.Keep = &contextdv1.Retention_Turns{Turns: withoutOwn(r.Turns)}
	}
	return out
}

// withoutOwn is the inverse of withOwn.
func withoutOwn(turns uint32) uint32 {
	if turns == 0 || turns == math.MaxUint32 {
		return turns
	}
	return turns - 1
}
