package projection

import (
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

const (
	defaultRootWindow = 8   // groups
	defaultMinChars   = 500 // runes
	// defaultClearAtLeast is how many tokens a batch of redactions frees at least, unless
	// the last one was defaultClearEvery turns ago.
	defaultClearAtLeast = 10_000
	defaultClearEvery   = 20
	// mostConsulted bounds how many roots are named.
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
// Redacted results stay redacted until a new root names them: see collection.consult. New ones go in batches.
// A result that came back stays, so that each changes at most twice, whatever comes.
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

// WithRoots returns the policy for a further request of the same session, whose
// options differ in no more than what Lasting omits. It shares what was gathered
// from the session.
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
	held   []*heldGroup // of the view's groups
	safety *safety
	start  int // the first group of those that stay
	before State
	reach  reach
	// lastWrite is the newest result of a call that wrote and did not fail.
	lastWrite *reduce.Call
	leave     []*heldResult // of the group that is decided on

	after State
	// fresh of the standing redactions are new. again are those that came back, and
	// waiting those that go with the next batch.
	fresh, standing, again, waiting, named, withheld, failed int

	opaque    opaqueGroups
	consulted []string
	notes     []string
}

// opaqueGroups are groups of which results hold a provider's own blocks.
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

// candidates says which results may go, and so may be reached.
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
			if call.Name != last { // most sessions call one tool many times
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

// eligible reports whether a result of group i is one that is redacted where nothing refers to it.
func (c *collection) eligible(i int, call *reduce.Call, h *heldResult) bool {
	recent := i >= c.start && !h.redacted
	return !recent && (!h.opaque || h.sealed) && h.chars >= c.minChars && !c.gone(i, call)
}

// gone reports whether reduction kept nothing but a pointer of the result.
func (c *collection) gone(i int, call *reduce.Call) bool {
	e, ok := c.view.Edit(i, call.Result, 0)
	return ok && (e.Kind == reduce.Stubbed || e.Kind == reduce.Redacted)
}
