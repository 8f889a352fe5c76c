package reduce

import (
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

const (
	// leastDigest is the smallest target, in tokens, for which a digest is written.
	leastDigest = 64
	// leastSystem is the smallest limit of a system prompt, in tokens.
	leastSystem = 256
)

// resort is a step of the last resort. docs/policies.md lists the steps by name.
type resort struct {
	name string
	// take makes the result smaller until it fits the target or the step can free no more.
	take func(Result) Result
}

// resorts lists the steps in which the last resort gives up what a forced cut spares, the least valuable first. The
// newest human message is clipped to humanLimit late, and further only in the last step.
func (r *reduction) resorts() []resort {
	return []resort{
		{"drop older turns", r.dropOlder},
		{"describe large media", func(now Result) Result { return r.describeMedia(now, r.budget.Target/2) }},
		{"clip the newest results", r.clipResults},
		{"shorten the digest", r.shortenDigest},
		{"clip a caller's summary", r.clipSummary},
		{"clip standing texts", func(now Result) Result {
			return r.clipTexts(now, func(g *Group) bool { return g.Standing != "" })
		}},
		{"take what is protected", r.release},
		{"describe media", r.describeAllMedia},
		{"clip the newest human message", func(now Result) Result { return r.clipHuman(now, r.humanLimit(now)) }},
		{"clip the system prompt", r.clipSystem},
		{"clip the newest texts", func(now Result) Result {
			return r.clipTexts(now, func(g *Group) bool { return g.Human == 0 })
		}},
		{"drop the newest turn", r.dropNewest},
		{"drop standing texts", r.dropAll},
		{"clip the newest human message further", r.clipHumanFurther},
	}
}

// lastResort takes the steps in order, repeatedly, until the view fits or no step makes it smaller.
func (r *reduction) lastResort(now Result) Result {
	var last string
	before := now
	for used := now.View.Tokens() + 1; r.over(now) && now.View.Tokens() < used && r.ended() == nil; {
		used = now.View.Tokens()
		for _, step := range r.resorts() {
			if !r.over(now) {
				break
			}
			now, last = step.take(now), step.name
		}
	}
	if now.State.Released > before.State.Released {
		now.note(before.View.released(now.State.Released))
	}
	now.note("the last resort went as far as: " + last)
	return now
}

// over reports whether a view is over the target.
func (r *reduction) over(now Result) bool { return now.View.Tokens() > r.budget.Target }

func (r *reduction) dropOlder(now Result) Result {
	dropped, d := now.State.CollapsedThrough, r.demand(now.View.Tokens())
	now = r.free(r.window, now, d)
	if !r.over(now) || dropped == 0 || now.State.CollapsedThrough > dropped {
		return now
	}
	// The record was shortened before, and one of full size would be larger than the groups that are dropped.
	through, least := r.window.cut(now.View, d, 0), max(now.State.CollapsedFor, leastDigest)
	for size := r.window.sizeFor(r.budget, 0) / 4; r.over(now) && through > dropped && size >= least; size /= 4 {
		now = r.collapse(now, through, size, r.lateAfter(now))
	}
	return now
}

func (r *reduction) clipResults(now Result) Result {
	return r.free(r.clipping, now, r.demand(now.View.Tokens()-r.budget.Target))
}

func (r *reduction) shortenDigest(now Result) Result {
	for size := r.window.sizeFor(r.budget, 0) / 4; r.over(now) && size >= leastDigest; size /= 4 {
		target := size
		if now.State.CollapsedThrough > 0 {
			target = min(size, max(now.State.CollapsedFor, leastDigest))
		}
		now = r.collapse(now, r.window.cut(now.View, r.demand(now.View.Tokens()), 0), target, r.lateAfter(now))
	}
	return now
}

// lateAfter is State.LateAfter for a cut of a view.
func (r *reduction) lateAfter(now Result) eventlog.Seq {
	return max(now.State.LateAfter, now.View.lateAfter(r.keepTurns()))
}

// collapse extends the run through an event, with a digest written for a target, or for a smaller one if a caller's
// decision or the budget demands that. lateAfter is the State.LateAfter to set.
func (r *reduction) collapse(now Result, through eventlog.Seq, target uint64, lateAfter eventlog.Seq) Result {
	s := now.State
	s.CollapsedThrough, s.CollapsedFor, s.LateAfter = max(s.CollapsedThrough, through), target, lateAfter
	return r.adopt(now, r.fromDecided(s))
}

// clipSummary shortens the text of a caller's summary, which no other step makes smaller.
func (r *reduction) clipSummary(now Result) Result {
	summary := r.digests.decided.summary()
	if summary.ID == "" || now.State.Summary != summary.ID {
		return now
	}
	for limit := r.conv.gauge.Text(summary.quote()) / 2; r.over(now) && limit >= clipFloor; limit /= 2 {
		s := now.State
		s.SummaryTokens = limit
		now = r.adopt(now, s)
	}
	return now
}

// clipTexts halves the limit on the texts of the groups for which of is true, until the view fits or the
// limit is at its least.
func (r *reduction) clipTexts(now Result, of func(*Group) bool) Result {
	before := now.State.TextClips
	for limit := r.budget.Target / 2; r.over(now) && limit >= clipFloor; limit /= 2 {
		var clips []Clip
		for i := range now.View.items {
			if g := now.View.items[i].group; !g.Anchor && !g.Pinned && of(g) {
				clips = append(clips, clipsOf(g, limit)...)
			}
		}
		if len(clips) == 0 {
			return now
		}
		s := now.State
		s.TextClips = slices.Concat(before, clips)
		now = r.adopt(now, s)
	}
	return now
}

// describeMedia replaces the media and provider blocks of users' messages that are larger than limit by descriptions,
// in the whole log so far. With strict_anchor the anchor keeps its media.
func (r *reduction) describeMedia(now Result, limit uint64) Result {
	clip := Clip{Through: r.conv.Head(), Tokens: limit}
	if v := now.View; r.policy.Window.StrictAnchor {
		for i := range v.items {
			if g := v.items[i].group; g.Anchor {
				clip.From = max(clip.From, g.Last)
			}
		}
	}
	s := now.State
	s.MediaClips = append(slices.Clone(s.MediaClips), clip)
	if s.AnchorTokens > 0 && r.conv.first.group >= 0 { // its texts stay as they are
		g := r.conv.groups[r.conv.first.group]
		described := g.shownTokens(limitsOf(now.State.MediaClips)) - g.shownTokens(limitsOf(s.MediaClips))
		s.AnchorTokens = max(s.AnchorTokens-min(s.AnchorTokens, described), min(s.AnchorTokens, clipFloor))
	}
	return r.adopt(now, s)
}

func (r *reduction) describeAllMedia(now Result) Result {
	for limit := r.budget.Target / 4; r.over(now) && limit >= clipFloor; limit /= 2 {
		now = r.describeMedia(now, limit)
	}
	return now
}

// clipHuman clips the newest human message to limit if it is larger.
func (r *reduction) clipHuman(now Result, limit uint64) Result {
	g := now.View.human
	if g == nil || g.Tokens <= limit {
		return now
	}
	s := now.State
	s.TextClips = slices.Concat(s.TextClips, clipsOf(g, max(clipLevel([]*Group{g}, limitsOf(s.MediaClips), limit), clipFloor)))
	return r.adopt(now, s)
}

func (r *reduction) clipHumanFurther(now Result) Result {
	for limit := r.humanLimit(now) / 2; r.over(now) && limit >= clipFloor; limit /= 2 {
		now = r.clipHuman(now, limit)
	}
	return now
}

// humanLimit returns how large the newest human message may be before it is clipped: half of the target, or less if
// this message and the first human message would leave less than a quarter of the target for the newest turn.
func (r *reduction) humanLimit(now Result) uint64 {
	first := now.View.tokensOf(func(g *Group) bool { return g.Anchor && g.Kind != KindSystem })
	target := r.budget.Target
	most := target / 4 * 3
	return max(target/4, min(target/2, most-min(first, most)))
}

// clipSystem clips a system prompt that leaves no room even for the newest turn, because a context with a part of the
// prompt is better than none. The prompt keeps half of the target, or less if the first and the newest human message
// need room, so that it is not clipped again soon.
func (r *reduction) clipSystem(now Result) Result {
	if r.policy.Window.StrictAnchor {
		return now
	}
	user := now.View.tokensOf(func(g *Group) bool { return g.Kind != KindSystem && (g.Anchor || g == now.View.human) })
	target := r.budget.Target
	limit := max(leastSystem, min(target/2, target/4*3-min(user, target/4*3)))
	for ; r.over(now) && limit >= leastSystem; limit /= 2 {
		s := now.State
		s.SystemTextTokens = r.systemLevel(s, limit)
		now = r.adopt(now, s)
	}
	return now
}

// dropNewest drops the newest turn, and before it others whose results came late. Only the arguments of their calls can
// still be large then: nothing may clip these, but the ledger shows their beginnings. Then it drops the injected messages
// after that turn, the newest one last.
func (r *reduction) dropNewest(now Result) Result {
	for _, through := range r.window.newestEnds(now.View) {
		if !r.over(now) {
			break
		}
		now = r.collapse(now, through, max(r.budget.Target/4, leastDigest), r.conv.head)
	}
	return now
}

// dropAll also drops the groups that a collapse keeps next to its digest: with a digest for a target of 0 there are
// none.
func (r *reduction) dropAll(now Result) Result { return r.collapse(now, r.conv.head, 0, r.conv.head) }
