package reduce

import (
	"github.com/contextd/contextd/internal/budget"
)

// firstLimits fixes, when a session is first assembled, the size above which results are clipped. It also clips a
// first user message over half of the target, and a system prompt over the cap of its tier, because these leave too
// little room for the rest. These limits stay until they are exceeded by far, so that reserves and reminders, which
// come and go, do not rewrite the front.
func (r *reduction) firstLimits(s State, target uint64) (State, error) {
	s = r.fromDecided(s)
	if r.policy.Whole {
		return s, nil
	}
	if s.ClipTokens == 0 {
		s.ClipTokens = r.policy.Clipping.Limit(r.budget)
	}
	strict := r.policy.Window.StrictAnchor
	if limit, ok := r.budget.Caps[budget.TierSystem]; ok && !strict && r.systemTokens(s.SystemTextTokens) > limit {
		if level := r.systemLevel(s, limit); s.SystemTextTokens == 0 || level < s.SystemTextTokens {
			s.SystemTextTokens = level
		}
	}
	if r.conv.first.group < 0 {
		return s, nil
	}
	g := r.conv.groups[r.conv.first.group]
	if g.Kind != KindUser || g.Pinned || g.Tokens <= target/2 || s.AnchorTokens > 0 && s.AnchorTokens <= target/3*2 {
		return s, nil
	}
	if strict {
		return s, &OverBudgetError{Target: target, Needed: 2 * g.Tokens, Parts: []IrreduciblePart{
			{"first user message", g.First, g.Tokens}, {"as much beside it, by strict_anchor", 0, g.Tokens},
		}}
	}
	if limit := r.anchorLimit(s, g); s.AnchorTokens == 0 || limit < s.AnchorTokens {
		s.AnchorTokens = limit
	}
	return s, nil
}

// anchorLimit returns how large the first user message may be: half of the target or, if its media take more than
// that, the size of the media and a quarter of the target for its texts.
func (r *reduction) anchorLimit(s State, g *Group) uint64 {
	var texts uint64
	for _, tokens := range g.textTokens() {
		texts += tokens
	}
	return max(r.budget.Target/2, g.shownTokens(limitsOf(s.MediaClips))-texts+min(texts, r.budget.Target/4))
}

// fromDecided is From, but limits the digest and the summary of callers' compactions to their shares of this budget,
// if that is far smaller than the budget under which the compaction was decided. It does not change what was written
// under this budget before: a run that the state has dropped itself, and a summary that was clipped.
func (r *reduction) fromDecided(s State) State {
	decided, own := r.digests.decided, s.CollapsedThrough
	if s = r.From(s); decided.through() == 0 {
		return s
	}
	far := func(size, limit uint64) bool { return size > limit+limit/2 }
	if most := r.window.sizeFor(r.budget, 0); s.CollapsedThrough == decided.Through && own < decided.Through && far(s.CollapsedFor, most) {
		s.CollapsedFor = most
	}
	if summary := decided.Summary; summary.ID != "" && s.Summary == summary.ID {
		if most := r.digests.proseLimit(r.budget); s.SummaryTokens == 0 && far(r.conv.gauge.Text(summary.quote()), most) {
			s.SummaryTokens = max(most, clipFloor)
		}
	}
	return s
}

// systemTokens returns the size of the part of the system prompt that may be clipped, if its texts are clipped to
// level tokens; 0 clips none.
func (p *Pipeline) systemTokens(level uint64) uint64 {
	var sum uint64
	for _, g := range p.systemPrompt() {
		sum += g.Tokens
		for _, tokens := range g.textTokens() {
			if level > 0 && tokens > level {
				sum -= tokens - level
			}
		}
	}
	return sum
}

// systemLevel returns the size to which each text of the system prompt must be cut for the prompt to take limit.
func (p *Pipeline) systemLevel(s State, limit uint64) uint64 {
	return max(clipLevel(p.systemPrompt(), limitsOf(s.MediaClips), limit), clipFloor)
}

func (p *Pipeline) systemPrompt() []*Group {
	var out []*Group
	for _, g := range p.conv.groups {
		if g.isSystemPrompt() {
			out = append(out, g)
		}
	}
	return out
}
