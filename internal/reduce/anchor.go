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
	if s.ClipTokens == 0 {
		s.ClipTokens = b.Share(resultShare)
		if limit := p.policy.Clipping.MaxTokens; limit > 0 {
			s.ClipTokens = min(s.ClipTokens, limit)
		}
	}
	strict := p.policy.Window.StrictAnchor
	if limit, ok := b.Caps[budget.TierSystem]; ok && !strict && p.systemTokens(s.SystemTextTokens) > limit {
		s.SystemTextTokens = p.systemLevel(limit)
	}
	if p.conv.firstUser < 0 {
		return s, nil
	}
	g := p.conv.groups[p.conv.firstUser]
	if g.Kind != KindUser || g.Pinned || g.Tokens <= target/2 || s.AnchorTokens > 0 && s.AnchorTokens <= target/3*2 {
		return s, nil
	}
	if strict {
		return s, &OverBudgetError{target, g.Tokens, []IrreduciblePart{{"first user message", g.First, g.Tokens}}}
	}
	s.AnchorTokens = b.Target / 2
	return s, nil
}

// clipSystem clips a system prompt that leaves no room even for the newest turn: a
// context with most of it is better than none. Half of the target is its own, or
// less where the first user message needs the room, so that it need not be clipped
// again soon.
func (p *Pipeline) clipSystem(b budget.Budget, r Result) Result {
	if p.policy.Window.StrictAnchor {
		return r
	}
	var user uint64
	for i := range r.View.items {
		if it := &r.View.items[i]; it.group.Anchor && it.group.Kind == KindUser {
			user = it.tokens
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

// clipTexts halves the limit of the texts that are left, of users and assistants,
// until the view fits or nothing is left that may be cut.
func (p *Pipeline) clipTexts(b budget.Budget, r Result) Result {
	before := r.State.TextClips
	for limit := b.Target / 2; r.View.Tokens() > b.Target && limit >= clipFloor; limit /= 2 {
		s := r.State
		s.TextClips = slices.Concat(before, []Clip{{0, p.conv.head, limit}})
		r = p.adopt(b, r, s)
	}
	return r
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
