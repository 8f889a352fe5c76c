package reduce

import (
	"iter"
	"slices"
	"sort"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Span is a part of the log to summarise: every group that begins in From..To, without the anchor and pinned groups.
type Span struct {
	From, To eventlog.Seq
	// Extends is the id of a summary that covers the first groups of the span; empty if none does.
	Extends string
	// Leaves is the size, in tokens, of what a compaction cannot drop.
	Leaves uint64
}

const (
	// leastNewShare is how much a summary must cover beyond the one that it extends, as a part of the target.
	leastNewShare = 0.1
	// enoughCovered is the part of the groups to drop that the newest summary must cover so that no other is made.
	enoughCovered = 0.75
)

// Propose returns the span to summarise so that a summary is ready at the next cut. It does so only when the context
// has passed Collapse.StartAt of the target. The span ends where the cut would end if the view grew to the size at
// which cuts begin and results were evicted first. ok is false while there is nothing to do.
func (p *Pipeline) Propose(b budget.Budget, now Result, ask Ask) (span Span, ok bool) {
	r := p.newReduction(b, ask)
	used, policy := now.View.Tokens(), p.policy.Collapse
	if p.policy.Whole || policy.StartAt == 0 || used < r.budget.Share(policy.StartAt) {
		return Span{}, false
	}
	goal, cut := r.budget.Share(policy.To), r.budget.Target
	if from := r.paysFrom(); from < cut {
		goal, cut = r.budget.Share(policy.Depth()), from
	}
	growth := cut - min(used, cut)
	goal -= min(goal, growth)
	now = r.free(r.retention, r.apply(r.evict(now.State)), r.demand(used-min(goal, used)))
	span, ok = r.spanFor(now, goal)
	if p.ended() != nil {
		return Span{}, false
	}
	return span, ok
}

// SpanFor returns the span to summarise for a caller's compaction: the groups that must be dropped to bring the view
// of a state down to ask.Goal or, if that is 0, all that may be dropped. If an existing summary is good enough, it is
// returned as ready; if nothing can be dropped, nothing says why. own says that the caller has a text of its own, so
// that no existing summary is used.
func (p *Pipeline) SpanFor(b budget.Budget, s State, ask Ask, own bool) (span Span, ready Summary, nothing string) {
	d, err := p.decide(b, s, ask)
	if err != nil {
		return Span{}, Summary{}, err.Error()
	}
	quoted, spared := p.digests.known(d.start.State.Summary), d.spared()
	all := p.closedThrough(spared)
	if p.conv.firstIn(quoted.Through, all) == 0 {
		all = spared // a result of an older call came later than the newest turns
	}
	if p.conv.firstIn(quoted.Through, all) == 0 {
		if quoted.ID != "" && d.start.State.CollapsedThrough > p.digests.decided.through() {
			return Span{}, quoted, "" // quoted under one policy and budget, it is now decided for all
		}
		return Span{}, Summary{}, d.whyNone()
	}
	to := all
	if used := d.start.View.Tokens(); !own && used > d.goal() && ask.Goal > 0 {
		demand := d.demand(used - d.goal())
		demand.Budget = d.sized()
		if cut := min(all, p.closedThrough(p.window.cut(d.start.View, demand, p.SummaryTokensFor(b, ask)))); p.conv.firstIn(quoted.Through, cut) > 0 {
			to = cut
		}
	}
	older := quoted
	if made := p.window.summary(d.start.View, d.demand(0)); !own && made.Through > quoted.Through {
		switch {
		case p.conv.firstIn(made.Through, to) > 0:
			older = made
		case p.conv.gauge.Text(made.quote()) <= p.digests.proseLimit(d.sized()):
			return Span{}, made, ""
		}
	}
	leaves := d.start.View.Tokens() - d.start.View.digest.Tokens - p.window.frees(d.start.View, demand{Budget: d.budget, KeepTurns: d.spareTurns()}, spared)
	return Span{From: p.conv.firstIn(0, to), To: to, Extends: older.ID, Leaves: leaves}, Summary{}, ""
}

func (r *reduction) spanFor(now Result, goal uint64) (span Span, ok bool) {
	used := now.View.Tokens()
	if used <= goal {
		return Span{}, false
	}
	d := r.demand(used - goal)
	older := r.window.summary(now.View, d)
	to := r.closedThrough(min(r.window.cut(now.View, d, r.SummaryTokens(r.budget)), now.View.beforeTurns(d.KeepTurns)))
	if to <= older.Through || older.ID != "" && r.window.covers(now.View, d, older, to, enoughCovered) {
		return Span{}, false
	}
	from := r.conv.firstIn(0, to)
	if from == 0 {
		return Span{}, false
	}
	span = Span{From: from, To: to, Extends: older.ID}
	return span, r.Worth(r.budget, span)
}

// Worth reports whether a span has enough tokens, beyond the summary that it extends, for a summary that no caller
// asked for.
func (p *Pipeline) Worth(b budget.Budget, span Span) bool {
	var fresh uint64
	after := p.digests.known(span.Extends).Through
	if i := p.conv.after(after); after > 0 {
		p.conv.needs(i - 1)
	}
	for g := range p.conv.spanned(after, span.To) {
		if fresh += g.Tokens; fresh > 0 && fresh >= b.Share(leastNewShare) {
			return true
		}
	}
	return false
}

// FreshAfter returns the newest event for which the groups between it and event to have enough tokens for a summary
// that no caller asked for; 0 if all groups up to event to do not.
func (p *Pipeline) FreshAfter(b budget.Budget, to eventlog.Seq) eventlog.Seq {
	var fresh uint64
	for i, g := range slices.Backward(p.conv.groups[:p.conv.after(to)]) {
		if !g.collapses(to) || p.conv.needs(i) {
			continue
		}
		if fresh += g.Tokens; fresh >= b.Share(leastNewShare) {
			return g.First - 1
		}
	}
	return 0
}

// SummaryTokens returns how many tokens a summary, as it is quoted, may take under a budget.
func (p *Pipeline) SummaryTokens(b budget.Budget) uint64 {
	return min(b.Share(p.policy.Collapse.SummaryShare), p.digests.proseLimit(b))
}

// SummaryTokensFor is SummaryTokens for a compaction's summary, which must also fit its goal.
func (p *Pipeline) SummaryTokensFor(b budget.Budget, ask Ask) uint64 {
	return min(p.SummaryTokens(b), p.digests.proseLimit(p.newReduction(b, ask).sized()))
}

// QuotableTokens returns the size, in tokens, above which no summary is quoted in full under a budget, whoever wrote
// it.
func (p *Pipeline) QuotableTokens(b budget.Budget) uint64 { return p.digests.proseLimit(b) }

// closedThrough returns the last event, up to through, that divides no group: all groups that begin up to it also end
// up to it.
func (p *Pipeline) closedThrough(through eventlog.Seq) eventlog.Seq {
	groups, ends := p.conv.groups, p.conv.endsOfAll()
	for i := p.conv.after(through) - 1; i >= 0 && !p.conv.needs(i); i-- {
		if next := i + 1; next == len(groups) || groups[next].First > ends[i] {
			return ends[i]
		}
	}
	return 0
}

// endsOfAll returns for each group the last event of this and all earlier groups.
func (c *Conversation) endsOfAll() []eventlog.Seq {
	for i := len(c.ends); i < len(c.groups); i++ {
		end := c.groups[i].Last
		if i > 0 {
			end = max(end, c.ends[i-1])
		}
		c.ends = append(c.ends, end)
	}
	return c.ends
}

// after returns the index of the first group that begins after an event.
func (c *Conversation) after(seq eventlog.Seq) int {
	return sort.Search(len(c.groups), func(i int) bool { return c.groups[i].First > seq })
}

// Span returns the groups that begin in after+1..to, without those that no run drops. The groups are immutable; the
// caller owns the slice.
func (c *Conversation) Span(after, to eventlog.Seq) []*Group {
	c.lend()
	return slices.Collect(c.spanned(after, to))
}

// spanned yields the groups of a span, oldest first.
func (c *Conversation) spanned(after, to eventlog.Seq) iter.Seq[*Group] {
	return func(yield func(*Group) bool) {
		for _, g := range c.groups[c.after(after):max(c.after(after), c.after(to))] {
			if g.collapses(to) && !yield(g) {
				return
			}
		}
	}
}

// firstIn returns the first event of the first group of a span; 0 if the span has no group.
func (c *Conversation) firstIn(after, to eventlog.Seq) eventlog.Seq {
	for g := range c.spanned(after, to) {
		return g.First
	}
	return 0
}

// Record returns the ledger of a span's calls and the index of its names, as a digest for a target has them.
func (p *Pipeline) Record(span Span, target uint64) (calls, index string) {
	m := newDigestMemo(p.conv.gauge)
	for g := range p.conv.spanned(0, span.To) {
		if p.ended() != nil {
			return "", ""
		}
		m.readGroup(g)
	}
	d := p.digests
	b := budget.Budget{Target: target}
	calls = budget.Join(m.calls.Write(b.Share(d.policy.LedgerShare)))
	shown := m.index.Shown()
	shown.Grow(calls)
	return calls, budget.Join(m.index.Write(d.policy.list(b, d.policy.IndexShare), shown))
}
