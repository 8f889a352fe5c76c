package projection

import (
	"fmt"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/ledger"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// fate is the decision on a candidate.
type fate uint8

const (
	stays      fate = iota
	redacted        // was redacted before and stays so
	unreferred      // nothing refers to it: redacted with the next batch
)

// decide redacts the results that were redacted before and, if a batch is worth it, those that nothing
// refers to now.
func (c *collection) decide(turns uint32) {
	var frees uint64
	for i, held := range c.held {
		if c.view.Ended() != nil {
			return
		}
		for _, at := range held.results {
			h := c.candidate(at)
			if h == nil {
				continue
			}
			if h.fate = c.fateOf(h); h.fate == unreferred && c.safety.alone(i).Results && !h.sealed {
				frees += c.view.Frees(i, c.pointer(i, h))
			}
		}
	}
	goes := c.batchGoes(frees, turns)
	for i, held := range c.held {
		if c.view.Ended() != nil {
			return
		}
		c.takeOut(i, held, goes)
	}
	if c.after.BatchTurn = c.before.BatchTurn; c.fresh > 0 {
		c.after.BatchTurn = turns
	}
}

// candidate returns a result by its index if it may be redacted; nil otherwise.
func (c *collection) candidate(at int32) *heldResult {
	if at < 0 || c.index.results[at].pass != c.index.pass {
		return nil
	}
	return &c.index.results[at]
}

// batchGoes reports whether to redact the unreferred results now. A redaction changes the context from its place on,
// which the provider must then read again. One rewrite for many redactions costs no more than one for a single
// redaction.
func (c *collection) batchGoes(frees uint64, turns uint32) bool {
	return frees >= c.clearAtLeast || turns-min(turns, c.before.BatchTurn) >= c.clearEvery
}

// fateOf decides on one candidate and records the decision in the next state.
func (c *collection) fateOf(h *heldResult) fate {
	place := h.call.Place()
	reached := h.reached == c.index.pass
	if reached {
		c.credit(c.index.names[h.by])
	}
	switch {
	case h.restored:
		c.after.Restored = append(c.after.Restored, place)
		return stays
	case h.redacted && reached && h.back:
		c.after.Redacted = append(c.after.Redacted, place)
		c.after.Restored = append(c.after.Restored, place)
		c.again++
		c.notes = append(c.notes, fmt.Sprintf("%s is shown again: %q names it", reduce.Pointer(place.Seq, place.Block), ledger.Cut(c.index.names[h.by], 80)))
		return stays
	case h.redacted:
		return redacted
	case reached:
		c.named++
		return stays
	case c.options.RequireWriteBarrier && !c.written(h.call):
		c.withheld++
		return stays
	default:
		return unreferred
	}
}

// written reports whether something was written after a result: then its content is no longer needed in the
// context.
func (c *collection) written(call *reduce.Call) bool {
	known := slices.ContainsFunc(c.options.WriteBarrierRefs, func(ref string) bool { return strings.TrimSpace(ref) != "" })
	return known || call.Seq < c.options.written || c.lastWrite != nil && older(call, c.lastWrite)
}

// takeOut redacts the results of group i whose fate says so. Results with a provider's own blocks are dropped with
// the whole group, or stay.
func (c *collection) takeOut(i int, held *heldGroup, goes bool) {
	leave := c.leave[:0]
	sealed := false
	for _, at := range held.results {
		h := c.candidate(at)
		switch {
		case h == nil:
		case h.fate == unreferred && !goes:
			c.waiting++
		case h.fate != stays:
			leave = append(leave, h)
			sealed = sealed || h.sealed
		}
	}
	c.leave = leave
	g := c.view.Group(i)
	switch {
	case len(leave) == 0:
	case sealed && c.options.IgnoreSignatures && len(leave) == len(g.Calls) && !speaks(g):
		if c.edit.Drop(i, ReachabilityGC, unreachable) {
			for _, h := range leave {
				c.count(h)
			}
		}
	default:
		for _, h := range leave {
			if !h.sealed {
				c.redact(i, h)
			}
		}
		if sealed {
			c.opaque.add(g)
		}
	}
}

func (c *collection) redact(i int, h *heldResult) {
	p := c.pointer(i, h)
	switch {
	case !c.safety.alone(i).Results:
		if c.view.Frees(i, p) > 0 {
			c.safety.block(i)
		}
	case c.edit.Put(i, p):
		c.count(h)
	}
}

// pointer returns what replaces a result of group i; cached.
func (c *collection) pointer(i int, h *heldResult) *reduce.Prepared {
	if h.pointer == nil {
		h.pointer = c.view.Prepare(i, h.call, reduce.Redacted, auditPointer(c.view.Recall(), h.call, h.chars), ReachabilityGC, unreachable)
	}
	return h.pointer
}

func (c *collection) count(h *heldResult) {
	if !h.redacted {
		c.fresh++
	}
	c.standing++
	c.after.Redacted = append(c.after.Redacted, h.call.Place())
}

// placeFinder tests whether places are in a sorted list. It is fast if the tests come in the order of the log.
type placeFinder struct {
	all []eventlog.Place // ascending
	at  int
}

func (f *placeFinder) has(p eventlog.Place) bool {
	if f.at < len(f.all) && f.all[f.at] == p {
		f.at++
		return true
	}
	if len(f.all) == 0 || p.Compare(f.all[len(f.all)-1]) > 0 {
		return false
	}
	at, found := slices.BinarySearchFunc(f.all, p, eventlog.Place.Compare)
	f.at = at
	if found {
		f.at++
	}
	return found
}
