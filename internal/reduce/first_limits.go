package reduce

import (
	"github.com/contextd/contextd/internal/budget"
)

// firstLimits fixes, when a session is first assembled, the size above which
// results are clipped, and clips what is at the very front where it would crowd out the
// rest: a first user message that takes more than half of the target, and a system prompt
// over a cap of its own. The limits hold until they are exceeded by far: reserves and
// reminders come and go, and must not rewrite the front.
func (r *reduction) firstLimits(s State, target uint64) (State, error) {
	s = r.decidedLimits(r.From(s))
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

// anchorLimit is what the first user message may take: half of the target, or, where its media that are
// shown take more, these and a quarter for its texts.
func (r *reduction) anchorLimit(s State, g *Group) uint64 {
	var texts uint64
	for _, tokens := range g.textTokens() {
		texts += tokens
	}
	return max(r.budget.Target/2, g.shownTokens(limitsOf(s.MediaClips))-texts+min(texts, r.budget.Target/4))
}

// decidedLimits keeps what replaces the groups of callers' compactions within the shares
// of a budget that is far smaller than the one it was decided under. A summary that was
// shortened is as a reduction under this budget showed it, and stays so.
func (r *reduction) decidedLimits(s State) State {
	decided := r.digests.decided
	if decided.through() == 0 {
		return s
	}
	far := func(size, limit uint64) bool { return size > limit+limit/2 }
	if most := r.window.sizeFor(r.budget, 0); s.CollapsedThrough == decided.Through && far(s.CollapsedFor, most) {
		s.CollapsedFor = most
	}
	if summary := decided.Summary; summary.ID != "" && s.Summary == summary.ID {
		if most := r.digests.proseLimit(r.budget); s.SummaryTokens == 0 && far(r.conv.gauge.Text(summary.quote()), most) {
			s.SummaryTokens = max(most, clipFloor)
		}
	}
	return s
}

// systemTokens is the size of the system prompt, as far as it may be clipped, with its
// texts clipped at level; 0 clips none.
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

// systemLevel is the size at which its texts must be cut for it to take limit.
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
