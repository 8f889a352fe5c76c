package reduce

import (
	"slices"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// resultShare is the largest part of the target that a single result may take
// when it first appears.
const resultShare = 0.125

// firstLimits fixes, when a session is first assembled, the size above which
// results are clipped, and clips what stands at the front of everything where it
// would crowd out the rest: a first user message that takes more than half of the
// target, and a system prompt over a cap of its own. The limits hold until they are
// exceeded by far: reserves and reminders come and go, and must not rewrite what
// stands in front of everything.
func (p *Pipeline) firstLimits(b budget.Budget, s State, target uint64) (State, error) {
	s = p.decidedLimits(b, p.From(s))
	if s.ClipTokens == 0 {
		s.ClipTokens = b.Share(resultShare)
		if limit := p.policy.Clipping.MaxTokens; limit > 0 {
			s.ClipTokens = min(s.ClipTokens, limit)
		}
	}
	strict := p.policy.Window.StrictAnchor
	if limit, ok := b.Caps[budget.TierSystem]; ok && !strict && p.systemTokens(s.SystemTextTokens) > limit {
		if level := p.systemLevel(limit); s.SystemTextTokens == 0 || level < s.SystemTextTokens {
			s.SystemTextTokens = level
		}
	}
	if p.conv.first.group < 0 {
		return s, nil
	}
	g := p.conv.groups[p.conv.first.group]
	if g.Kind != KindUser || g.Pinned || g.Tokens <= target/2 || s.AnchorTokens > 0 && s.AnchorTokens <= target/3*2 {
		return s, nil
	}
	if strict {
		return s, &OverBudgetError{target, g.Tokens, []IrreduciblePart{{"first user message", g.First, g.Tokens}}}
	}
	s.AnchorTokens = b.Target / 2
	return s, nil
}

// decidedLimits keeps what stands for the groups that left by a caller's decision within
// the shares of a budget that is far smaller than the one it was decided under.
func (p *Pipeline) decidedLimits(b budget.Budget, s State) State {
	digests := p.window.digests
	if digests.decided.through() == 0 {
		return s
	}
	far := func(size, limit uint64) bool { return size > limit+limit/2 }
	if most := p.window.sizeFor(b, 0); s.CollapsedThrough == digests.decided.Through && far(s.CollapsedFor, most) {
		s.CollapsedFor = most
	}
	if summary := digests.decided.Summary; summary.ID != "" && s.Summary == summary.ID {
		if most := digests.proseLimit(b); far(digests.gauge.Text(summary.quote()), most) && (s.SummaryTokens == 0 || far(s.SummaryTokens, most)) {
			s.SummaryTokens = max(most, clipFloor)
		}
	}
	return s
}

// clipSystem clips a system prompt that leaves no room even for the newest turn: a
// context with most of it is better than none. Half of the target is its own, or
// less where the first and the newest human message need the room, so that it need not
// be clipped again soon.
func (p *Pipeline) clipSystem(b budget.Budget, r Result) Result {
	if p.policy.Window.StrictAnchor {
		return r
	}
	var user uint64
	for i := range r.View.items {
		if it := &r.View.items[i]; it.group.Kind != KindSystem && (it.group.Anchor || it.group == r.View.human) {
			user += it.tokens
		}
	}
	const floor = 256 // tokens
	limit := max(floor, min(b.Target/2, b.Target/4*3-min(user, b.Target/4*3)))
	for ; r.View.Tokens() > b.Target && limit >= floor; limit /= 2 {
		s := r.State
		s.SystemTextTokens = p.systemLevel(limit)
		r = p.adopt(b, r, s)
	}
	return r
}

// clipSummary shortens the text of a caller's summary, which nothing else leaves out.
func (p *Pipeline) clipSummary(b budget.Budget, r Result) Result {
	summary := p.window.digests.decided.summary()
	if summary.ID == "" || r.State.Summary != summary.ID {
		return r
	}
	for limit := p.window.digests.gauge.Text(summary.quote()) / 2; r.View.Tokens() > b.Target && limit >= clipFloor; limit /= 2 {
		s := r.State
		s.SummaryTokens = limit
		r = p.adopt(b, r, s)
	}
	return r
}

// clipHuman clips the newest human message to limit, if it is over it and nothing keeps
// its texts whole.
func (p *Pipeline) clipHuman(b budget.Budget, r Result, limit uint64) Result {
	g := r.View.human
	if g == nil || r.View.Tokens() <= b.Target || g.Tokens <= limit {
		return r
	}
	s := r.State
	s.TextClips = slices.Concat(s.TextClips, clipsOf(g, max(clipLevel([]*Group{g}, limit), clipFloor)))
	return p.adopt(b, r, s)
}

// humanLimit is what the newest human message may take beside the first before it is
// clipped: half of the target, or less where the two leave the newest turn less than a
// quarter.
func (p *Pipeline) humanLimit(b budget.Budget, r Result) uint64 {
	var first uint64
	for i := range r.View.items {
		if it := &r.View.items[i]; it.group.Anchor && it.group.Kind != KindSystem {
			first += it.tokens
		}
	}
	most := b.Target / 4 * 3
	return max(b.Target/4, min(b.Target/2, most-min(first, most)))
}

// clipTexts halves the limit of the texts of some groups, until the view fits or
// nothing is left that may be cut.
func (p *Pipeline) clipTexts(b budget.Budget, r Result, of func(*Group) bool) Result {
	before := r.State.TextClips
	for limit := b.Target / 2; r.View.Tokens() > b.Target && limit >= clipFloor; limit /= 2 {
		var clips []Clip
		for i := range r.View.items {
			if g := r.View.items[i].group; !g.Anchor && !g.Pinned && of(g) {
				clips = append(clips, clipsOf(g, limit)...)
			}
		}
		if len(clips) == 0 {
			return r
		}
		s := r.State
		s.TextClips = slices.Concat(before, clips)
		r = p.adopt(b, r, s)
	}
	return r
}

// clipsOf limits the texts of one group.
func clipsOf(g *Group, limit uint64) []Clip {
	var clips []Clip
	for m := range g.Messages {
		for _, seq := range g.Messages[m].Seqs {
			if last := len(clips) - 1; last >= 0 && clips[last].Through == seq-1 {
				clips[last].Through = seq
			} else {
				clips = append(clips, Clip{seq - 1, seq, limit})
			}
		}
	}
	return clips
}

// systemTokens is the size of the system prompt, as far as it may be clipped, with its
// texts clipped at level; 0 clips none.
func (p *Pipeline) systemTokens(level uint64) uint64 {
	var sum uint64
	for _, g := range p.systemPrompt() {
		sum += g.Tokens
		for m := range g.Messages {
			for _, b := range g.Messages[m].Blocks {
				if _, ok := b.Block.(eventlog.Text); ok && level > 0 && b.Tokens > level {
					sum -= b.Tokens - level
				}
			}
		}
	}
	return sum
}

// systemLevel is the size at which its texts must be cut for it to take limit.
func (p *Pipeline) systemLevel(limit uint64) uint64 {
	return max(clipLevel(p.systemPrompt(), limit), clipFloor)
}

func (p *Pipeline) systemPrompt() []*Group {
	var all []*Group
	for _, g := range p.conv.groups {
		if g.isSystemPrompt() {
			all = append(all, g)
		}
	}
	return all
}

// isSystemPrompt reports whether the group is a part of the system prompt that may
// be clipped.
func (g *Group) isSystemPrompt() bool { return g.Kind == KindSystem && g.Anchor && !g.Pinned }

// clipAnchor shortens the texts of group i that are larger than level.
func (c clipping) clipAnchor(e *Editor, i int, level uint64, reason string) {
	g := e.v.Group(i)
	for m := range g.Messages {
		for b, block := range g.Messages[m].Blocks {
			text, ok := block.Block.(eventlog.Text)
			if !ok {
				continue
			}
			if short, ok := c.texts.clipText(block, text.Text, level); ok {
				e.ClipAnchor(i, m, b, short, c.Name(), reason)
			}
		}
	}
}

// clipLevel is the size at which texts must be cut for the groups to take limit.
func clipLevel(groups []*Group, limit uint64) uint64 {
	var texts []uint64
	var rest uint64
	for _, g := range groups {
		rest += g.Tokens
		for m := range g.Messages {
			for _, block := range g.Messages[m].Blocks {
				if _, ok := block.Block.(eventlog.Text); ok {
					texts = append(texts, block.Tokens)
					rest -= block.Tokens
				}
			}
		}
	}
	room := limit - min(rest, limit)
	slices.Sort(texts)
	for i, tokens := range texts {
		level := room / uint64(len(texts)-i)
		if tokens > level {
			return level
		}
		room -= tokens
	}
	return limit
}
