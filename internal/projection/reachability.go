package projection

import (
	"fmt"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/ledger"
	"github.com/contextd/contextd/internal/reduce"
)

const (
	defaultRootWindow = 8   // groups
	defaultMinChars   = 500 // runes
	// mostConsulted bounds how many roots are told of.
	mostConsulted = 64
	// WriteBarrierMissing is the reason of reachability_gc for doing nothing where a
	// write is required and there is none.
	WriteBarrierMissing = "reachability_gc_write_barrier_missing"
	unreachable         = "nothing recent refers to it"
)

// reachability redacts results that no root refers to. It goes one step: what a
// reachable result names is not reachable by that, or an agent at work, whose
// results all name their neighbours, would free nothing.
//
// Redacted results stay redacted until a new root names them: see collection.consult.
// A result that came back stays, so that each changes at most twice, whatever comes.
type reachability struct {
	options          Options
	window, minChars int
	index            *nameIndex
}

func newReachability(o Options) *reachability {
	p := &reachability{options: o, window: defaultRootWindow, minChars: defaultMinChars, index: newNameIndex()}
	if o.RootWindow != nil {
		p.window = int(*o.RootWindow)
	}
	if o.MinChars != nil {
		p.minChars = int(*o.MinChars)
	}
	return p
}

// WithRoots returns the policy for a further request of the same session, whose
// options differ in no more than what Lasting leaves out. It shares what was gathered
// from the session.
func (p *reachability) WithRoots(o Options) Policy {
	q := newReachability(o)
	q.index = p.index
	return q
}

// Lasting are the options without what may change from request to request: the
// caller's roots and the writes that it knows of. Decisions that stick belong to
// these.
func (o Options) Lasting() Options {
	o.Roots, o.ActivePlan, o.Scratchpad, o.PendingToolArgs, o.UnresolvedFindings, o.WriteBarrierRefs = nil, "", "", nil, nil, nil
	return o
}

func (p *reachability) Apply(v reduce.View, _ uint32, before State) Applied {
	p.index.mu.Lock()
	defer p.index.mu.Unlock()
	p.index.follow(v)
	c := &collection{
		reachability: p, view: v, edit: v.Editor(),
		start:    max(0, v.Len()-max(p.window, p.options.keepLast(defaultKeepLast))),
		redacted: placeSet(before.Redacted), restored: placeSet(before.Restored),
	}
	c.candidates()
	c.consult()
	for i := range v.Len() {
		c.group(i)
	}
	return c.applied(before)
}

// collection is one application of the policy.
type collection struct {
	*reachability
	view               reduce.View
	edit               *reduce.Editor
	start              int // the first group of those left alone
	redacted, restored map[Place]bool
	reach              reach
	// lastWrite is the newest result of a call that wrote and did not fail.
	lastWrite *reduce.Call

	after                                       State
	fresh, again, named, held, withheld, failed int
	sealed                                      sealedGroups
	consulted                                   []string
	notes                                       []string
}

// candidates says which results may leave, and so may be reached.
func (c *collection) candidates() {
	c.reach = reach{nameIndex: c.index, tools: map[string]bool{}}
	for i := range c.view.Len() {
		g := c.view.Group(i)
		results := c.index.groups[g].results
		for n := range g.Calls {
			call := &g.Calls[n]
			c.reach.tools[call.Name] = true
			if results[n] < 0 {
				continue
			}
			h := &c.index.results[results[n]]
			h.seen = c.index.pass
			if !h.failed && h.writes && (c.lastWrite == nil || older(c.lastWrite, call)) {
				c.lastWrite = call
			}
			place := Place{call.Seq, call.Block}
			if i >= c.start && !c.redacted[place] || !may(c.view, i) || h.opaque && !h.sealed || h.chars < c.minChars || c.gone(i, call) {
				continue
			}
			if h.failed {
				c.failed++
				continue
			}
			h.pass = c.index.pass
		}
	}
}

// gone reports whether reduction left nothing but a pointer of the result.
func (c *collection) gone(i int, call *reduce.Call) bool {
	e, ok := c.view.Edit(i, call.Result, 0)
	return ok && (e.Kind == reduce.Stubbed || e.Kind == reduce.Redacted)
}

// group decides on the results of group i.
func (c *collection) group(i int) {
	g := c.view.Group(i)
	var leave []*heldResult
	sealed := false
	for _, at := range c.index.groups[g].results {
		if at < 0 || c.index.results[at].pass != c.index.pass {
			continue
		}
		h := &c.index.results[at]
		if c.leaves(h) {
			leave = append(leave, h)
			sealed = sealed || h.sealed
		}
	}
	switch {
	case len(leave) == 0:
	case !sealed:
		for _, h := range leave {
			c.redact(i, h)
		}
	case c.options.IgnoreSignatures && len(leave) == len(g.Calls) && !speaks(g):
		if c.edit.Drop(i, ReachabilityGC, unreachable) {
			for _, h := range leave {
				c.count(Place{h.call.Seq, h.call.Block})
			}
		}
	default:
		for _, h := range leave {
			if !h.sealed {
				c.redact(i, h)
			}
		}
		c.sealed.add(g)
	}
}

// leaves decides on one candidate and notes what is to be remembered of it.
func (c *collection) leaves(h *heldResult) bool {
	place := Place{h.call.Seq, h.call.Block}
	reached := h.reached == c.index.pass
	if reached {
		c.credit(c.index.names[h.by])
	}
	switch {
	case c.restored[place]:
		c.after.Restored = append(c.after.Restored, place)
		return false
	case c.redacted[place] && reached && h.back:
		c.after.Redacted = append(c.after.Redacted, place)
		c.after.Restored = append(c.after.Restored, place)
		c.again++
		c.notes = append(c.notes, fmt.Sprintf("%s is shown again: %q names it", reduce.Pointer(place.Seq, place.Block), ledger.Cut(c.index.names[h.by], 80)))
		return false
	case c.redacted[place]:
		return true
	case reached:
		c.named++
		return false
	case c.options.RequireWriteBarrier && !c.written(h.call):
		c.withheld++
		return false
	default:
		return true
	}
}

// written reports whether something was written after a result, so that what it said
// need not be read from the context any more.
func (c *collection) written(call *reduce.Call) bool {
	known := slices.ContainsFunc(c.options.WriteBarrierRefs, func(ref string) bool { return strings.TrimSpace(ref) != "" })
	return known || c.lastWrite != nil && older(call, c.lastWrite)
}

func (c *collection) redact(i int, h *heldResult) {
	if h.pointer == "" {
		h.pointer = auditPointer(h.call, h.chars)
	}
	if c.edit.Redact(i, h.call, h.pointer, ReachabilityGC, unreachable) {
		c.count(Place{h.call.Seq, h.call.Block})
	}
}

func (c *collection) count(place Place) {
	if !c.redacted[place] {
		c.fresh++
	}
	c.held++
	c.after.Redacted = append(c.after.Redacted, place)
}
