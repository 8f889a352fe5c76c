package records

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// toolResults is the reducer whose watermark (State.Through) has a field of its own.
const toolResults = "tool_results"

func storeReductionState(s reduce.State) *storagev1.ReductionState {
	out := &storagev1.ReductionState{
		EvictedAsOf: uint64(s.EvictedAsOf), EvictedTurn: s.EvictedTurn, AskedAsOf: uint64(s.AskedAsOf),
		StubbedThrough: uint64(s.Through(toolResults)), CollapsedThrough: uint64(s.CollapsedThrough), CollapsedFor: s.CollapsedFor, LateAfter: uint64(s.LateAfter),
		Summary: s.Summary, ClipTokens: s.ClipTokens, Clips: storeClips(s.Clips), TextClips: storeClips(s.TextClips), MediaClips: storeClips(s.MediaClips),
		AnchorTokens: s.AnchorTokens, SystemTextTokens: s.SystemTextTokens, SummaryTokens: s.SummaryTokens,
		Rooted: storePlaces(s.Rooted), Released: uint64(s.Released), Unbound: storeRanges(s.Unbound),
	}
	out.Freed = make(map[string]uint64, len(s.Freed))
	for reducer, through := range s.Freed {
		out.Freed[reducer] = uint64(through)
	}
	delete(out.Freed, toolResults)
	return out
}

func (r *reader) reduction(m *storagev1.ReductionState) reduce.State {
	out := reduce.State{
		EvictedAsOf: eventlog.Seq(m.GetEvictedAsOf()), EvictedTurn: m.GetEvictedTurn(), AskedAsOf: eventlog.Seq(m.GetAskedAsOf()),
		CollapsedThrough: eventlog.Seq(m.GetCollapsedThrough()), CollapsedFor: m.GetCollapsedFor(), LateAfter: eventlog.Seq(m.GetLateAfter()),
		Summary: m.GetSummary(), ClipTokens: m.GetClipTokens(), Clips: readClips(m.GetClips()), TextClips: readClips(m.GetTextClips()), MediaClips: readClips(m.GetMediaClips()),
		AnchorTokens: m.GetAnchorTokens(), SystemTextTokens: m.GetSystemTextTokens(), SummaryTokens: m.GetSummaryTokens(),
		Rooted: r.places(m.GetRooted()), Released: eventlog.Seq(m.GetReleased()), Unbound: r.ranges(m.GetUnbound()),
	}
	if through := m.GetStubbedThrough(); through > 0 {
		out.Freed = map[string]eventlog.Seq{toolResults: eventlog.Seq(through)}
	}
	for reducer, through := range m.GetFreed() {
		if out.Freed == nil {
			out.Freed = map[string]eventlog.Seq{}
		}
		out.Freed[reducer] = eventlog.Seq(through)
	}
	return out
}

func storeClips(all []reduce.Clip) []*storagev1.Clip {
	var out []*storagev1.Clip
	for _, c := range all {
		out = append(out, &storagev1.Clip{From: uint64(c.From), Through: uint64(c.Through), Tokens: c.Tokens})
	}
	return out
}

func readClips(all []*storagev1.Clip) []reduce.Clip {
	var out []reduce.Clip
	for _, c := range all {
		out = append(out, reduce.Clip{From: eventlog.Seq(c.GetFrom()), Through: eventlog.Seq(c.GetThrough()), Tokens: c.GetTokens()})
	}
	return out
}

func storeReduction(p reduce.Policy) *storagev1.ReductionPolicy {
	out := &storagev1.ReductionPolicy{
		Whole:            p.Whole,
		DefaultRetention: storeRetention(p.ToolResults.Default),
		StrictRetention:  p.ToolResults.Strict,
		EvictErrors:      p.ToolResults.EvictErrors, OutlineTokens: p.ToolResults.OutlineTokens, Duplicates: p.Duplicates,
		ClipMaxTokens: p.Clipping.MaxTokens, ClipHeadTokens: p.Clipping.HeadTokens, ClipTailTokens: p.Clipping.TailTokens, ClipExact: p.Clipping.Exact,
		ThinkingKeepTurns: p.Thinking.KeepTurns, ReturnThinking: p.Thinking.Return,
		WindowMaxTurns: p.Window.MaxTurns, WindowMaxTokens: p.Window.MaxTokens, StrictAnchor: p.Window.StrictAnchor,
		CollapseTo: p.Collapse.To, CutFrom: p.Collapse.CutFrom, CutPaybackTurns: p.Collapse.CutPaybackTurns, KeepLastTurns: p.Collapse.KeepLastTurns,
		LedgerShare: p.Collapse.LedgerShare, WorkingSetShare: p.Collapse.WorkingSetShare, ListTokens: p.Collapse.ListTokens, IndexTokens: p.Collapse.IndexTokens, IndexLines: p.Collapse.IndexLines, CutFromTokens: p.Collapse.CutFromTokens, CutTo: p.Collapse.CutTo, CutReach: p.Collapse.CutReach, ClipShare: p.Clipping.Share, ClipNameTokens: p.Clipping.NameTokens, IndexShare: p.Collapse.IndexShare, SummaryShare: p.Collapse.SummaryShare, SummaryStartAt: p.Collapse.StartAt,
		EvictEveryTurns: p.Cache.EvictEveryTurns, ClearAtLeastTokens: p.Cache.ClearAtLeastTokens,
		CacheTtlNanos: int64(p.Cache.TTL), PaybackTurns: p.Cache.PaybackTurns,
	}
	if p.Recall != reduce.RecallUnknown {
		out.RecallTool = proto.String(string(p.Recall))
	}
	if c := p.Cache.Prices; c != (reduce.Prices{}) {
		out.CachePrices = &storagev1.CachePrices{CacheRead: c.CacheRead, CacheWrite: c.CacheWrite, MinCachedTokens: c.MinCachedTokens}
	}
	for _, tool := range slices.Sorted(maps.Keys(p.ToolResults.ByTool)) {
		out.RetentionByTool = append(out.RetentionByTool, &storagev1.ToolRetention{Tool: tool, Retention: storeRetention(p.ToolResults.ByTool[tool])})
	}
	return out
}

func readReduction(m *storagev1.ReductionPolicy) reduce.Policy {
	if m == nil {
		return reduce.Policy{}
	}
	out := reduce.Policy{
		Whole:       m.GetWhole(),
		ToolResults: reduce.ToolResults{Default: readRetention(m.GetDefaultRetention()), Strict: m.GetStrictRetention(), EvictErrors: m.GetEvictErrors(), OutlineTokens: m.GetOutlineTokens()},
		Duplicates:  m.GetDuplicates(),
		Clipping:    reduce.Clipping{MaxTokens: m.GetClipMaxTokens(), HeadTokens: m.GetClipHeadTokens(), TailTokens: m.GetClipTailTokens(), Exact: m.GetClipExact(), Share: m.GetClipShare(), NameTokens: m.GetClipNameTokens()},
		Thinking:    reduce.Thinking{KeepTurns: m.ThinkingKeepTurns, Return: m.GetReturnThinking()},
		Window:      reduce.Window{MaxTurns: m.GetWindowMaxTurns(), MaxTokens: m.GetWindowMaxTokens(), StrictAnchor: m.GetStrictAnchor()},
		Collapse: reduce.Collapse{
			To: m.GetCollapseTo(), CutFrom: m.GetCutFrom(), CutPaybackTurns: m.GetCutPaybackTurns(), KeepLastTurns: m.GetKeepLastTurns(),
			LedgerShare: m.GetLedgerShare(), WorkingSetShare: m.GetWorkingSetShare(), ListTokens: m.GetListTokens(), IndexTokens: m.GetIndexTokens(), IndexLines: m.GetIndexLines(), CutFromTokens: m.GetCutFromTokens(), CutTo: m.GetCutTo(), CutReach: m.GetCutReach(), IndexShare: m.GetIndexShare(), SummaryShare: m.GetSummaryShare(), StartAt: m.GetSummaryStartAt(),
		},
		Recall: reduce.RecallUnknown,
		Cache: reduce.Cache{
			EvictEveryTurns: m.GetEvictEveryTurns(), ClearAtLeastTokens: m.GetClearAtLeastTokens(),
			TTL: time.Duration(m.GetCacheTtlNanos()), PaybackTurns: m.GetPaybackTurns(),
			Prices: reduce.Prices{CacheRead: m.GetCachePrices().GetCacheRead(), CacheWrite: m.GetCachePrices().GetCacheWrite(), MinCachedTokens: m.GetCachePrices().GetMinCachedTokens()},
		},
	}
	if m.RecallTool != nil {
		out.Recall = reduce.Recall(m.GetRecallTool())
	}
	for _, t := range m.GetRetentionByTool() {
		if out.ToolResults.ByTool == nil {
			out.ToolResults.ByTool = make(map[string]reduce.Retention, len(m.GetRetentionByTool()))
		}
		out.ToolResults.ByTool[t.GetTool()] = readRetention(t.GetRetention())
	}
	return out
}

func storeRetention(r reduce.Retention) *storagev1.Retention {
	return &storagev1.Retention{Turns: r.Turns, Last: r.Last, Never: r.Never, MinTokens: r.MinTokens}
}

func readRetention(m *storagev1.Retention) reduce.Retention {
	return reduce.Retention{Turns: m.GetTurns(), Last: m.GetLast(), Never: m.GetNever(), MinTokens: m.GetMinTokens()}
}

func storeAsk(a reduce.Ask) *storagev1.Ask {
	return &storagev1.Ask{Reserved: a.Reserved, Goal: a.Goal, Strategy: string(a.Strategy), KeepLastTurns: a.KeepLastTurns, Rejected: a.Rejected}
}

func readAsk(m *storagev1.Ask) reduce.Ask {
	return reduce.Ask{Reserved: m.GetReserved(), Goal: m.GetGoal(), Strategy: reduce.Strategy(m.GetStrategy()), KeepLastTurns: m.GetKeepLastTurns(), Rejected: m.GetRejected()}
}

func storeBudget(b budget.Budget) *storagev1.Budget {
	out := &storagev1.Budget{
		Target: b.Target, MaxTokens: b.MaxTokens, InjectionReserve: b.InjectionReserve, OverheadTokens: b.OverheadTokens,
		Tokenizer: b.Tokenizer, Format: b.Format, Model: b.Model, YellowAt: b.YellowAt, RedAt: b.RedAt, Calibration: b.Calibration,
		Reasoning: storagev1.CountedReasoning(b.Reasoning),
	}
	for _, tier := range slices.Sorted(maps.Keys(b.Caps)) {
		out.Caps = append(out.Caps, &storagev1.TierCap{Tier: string(tier), Tokens: b.Caps[tier], Fraction: b.CapFractions[tier]})
	}
	return out
}

func readBudget(m *storagev1.Budget) budget.Budget {
	out := budget.Budget{
		Target: m.GetTarget(), MaxTokens: m.GetMaxTokens(), InjectionReserve: m.GetInjectionReserve(), OverheadTokens: m.GetOverheadTokens(),
		Tokenizer: m.GetTokenizer(), Format: m.GetFormat(), Model: m.GetModel(), YellowAt: m.GetYellowAt(), RedAt: m.GetRedAt(), Calibration: m.GetCalibration(),
		Reasoning: budget.CountedReasoning(m.GetReasoning()),
	}
	for _, c := range m.GetCaps() {
		if out.Caps == nil {
			out.Caps, out.CapFractions = map[budget.Tier]uint64{}, map[budget.Tier]float64{}
		}
		out.Caps[budget.Tier(c.GetTier())], out.CapFractions[budget.Tier(c.GetTier())] = c.GetTokens(), c.GetFraction()
	}
	return out
}
