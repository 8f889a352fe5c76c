package projection

import (
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

const (
	defaultRootWindow = 8   // groups
	defaultMinChars   = 500 // runes
	// defaultClearAtLeast is how many tokens a batch of redactions must free, unless defaultClearEvery
	// turns have passed since the last batch.
	defaultClearAtLeast = 10_000
	defaultClearEvery   = 20
	// mostConsulted bounds the roots in Applied.RootsConsulted.
	mostConsulted = 64
	// WriteBarrierMissing is the reason of reachability_gc for doing nothing if a write is required and
	// there is none.
	WriteBarrierMissing = "reachability_gc_write_barrier_missing"
	unreachable         = "nothing recent refers to it"
)

// reachability redacts results that no root names. It follows names for one step only: the names in a reachable
// result do not make further results reachable. Otherwise nothing would be freed, since the results of a working
// agent all name their neighbours.
//
// A redacted result stays redacted until a new root names it: see collection.consult. New redactions are made in
// batches. A result that is shown again is never redacted again, so each changes at most twice.
type reachability struct {
	options          Options
	window, minChars int
	// clearAtLeast is how many tokens a batch must free, unless clearEvery turns have
	// passed since the last one.
	clearAtLeast uint64
	clearEvery   uint32
	index        *nameIndex
}

func newReachability(o Options, index *nameIndex) *reachability {
	p := &reachability{
		options: o, window: defaultRootWindow, minChars: defaultMinChars,
		clearAtLeast: defaultClearAtLeast, clearEvery: defaultClearEvery, index: index,
	}
	if o.RootWindow != nil {
		p.window = int(*o.RootWindow)
	}
	if o.MinChars != nil {
		p.minChars = int(*o.MinChars)
	}
	if o.ClearAtLeastTokens != nil {
		p.clearAtLeast = uint64(*o.ClearAtLeastTokens)
	}
	return p
}

// WithRoots implements Rooted. The new policy shares the index of names with the old one.
func (p *reachability) WithRoots(o Options) Policy {
	return newReachability(o, p.index)
}

func (p *reachability) Apply(v reduce.View, turns uint32, before State) Applied {
	p.index.mu.Lock()
	defer p.index.mu.Unlock()
	held := p.index.follow(v)
	if v.Ended() != nil {
		return Applied{View: v, State: before}
	}
	c := &collection{
		reachability: p, view: v, edit: v.Editor(), held: held, safety: newSafety(v, p.options),
		start:  max(0, v.Len()-max(p.window, p.options.keepLast(defaultKeepLast))),
		before: before,
	}
	c.candidates()
	c.consult()
	c.decide(turns)
	if v.Ended() != nil {
		return Applied{View: v, State: before}
	}
	return c.applied()
}

// collection is one application of the policy.
type collection struct {
	*reachability
	view   reduce.View
	edit   *reduce.Editor
	held   []*heldGroup // one for each group of the view
	safety *safety
	start  int // index of the first group that is recent
	before State
	reach  reach
	// lastWrite is the newest result of a call that wrote and did not fail.
	lastWrite *reduce.Call
	leave     []*heldResult // reused by takeOut

	after State
	// standing counts the redactions in the view, fresh the new ones of these, again the results that are shown
	// again, and waiting the results to be redacted in the next batch.
	fresh, standing, again, waiting, named, withheld, failed int

	opaque    opaqueGroups
	consulted []string
	notes     []string
}

// opaqueGroups counts groups with results that have a provider's own blocks.
type opaqueGroups struct {
	count int
	first eventlog.Seq
}

func (o *opaqueGroups) add(g *reduce.Group) {
	if o.count == 0 {
		o.first = g.First
	}
	o.count++
}

// candidates marks the results that may be redacted; only these can be reached by roots.
func (c *collection) candidates() {
	c.reach = reach{nameIndex: c.index, tools: map[string]bool{}}
	redacted, restored := placeFinder{all: c.before.Redacted}, placeFinder{all: c.before.Restored}
	last := ""
	for i, held := range c.held {
		if c.view.Ended() != nil {
			return
		}
		g := c.view.Group(i)
		touchable := mayTouch(c.view, i)
		for n := range g.Calls {
			call := &g.Calls[n]
			if call.Name != last { // saves a map access: most sessions call one tool many times
				last = call.Name
				c.reach.tools[last] = true
			}
			if held.results[n] < 0 {
				continue
			}
			h := &c.index.results[held.results[n]]
			h.seen = c.index.pass
			if !h.failed && h.writes && (c.lastWrite == nil || older(c.lastWrite, call)) {
				c.lastWrite = call
			}
			place := call.Place()
			h.redacted, h.restored = redacted.has(place), restored.has(place)
			switch {
			case !touchable || !c.eligible(i, call, h):
			case h.failed:
				c.failed++
			default:
				h.pass = c.index.pass
			}
		}
	}
}

// eligible reports whether a result of group i may be redacted if nothing refers to it.
func (c *collection) eligible(i int, call *reduce.Call, h *heldResult) bool {
	recent := i >= c.start && !h.redacted
	return !recent && (!h.opaque || h.sealed) && h.chars >= c.minChars && !c.gone(i, call)
}

// gone reports whether reduction has already replaced the result by a pointer.
func (c *collection) gone(i int, call *reduce.Call) bool {
	e, ok := c.view.Edit(i, call.Result, 0)
	return ok && (e.Kind == reduce.Stubbed || e.Kind == reduce.Redacted)
}
