package projection

import (
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// cleanToolRepair hides failed calls that were repaired: a later call of the same tool for the same target
// did not fail. A group that consists of such failures alone is dropped whole; in other groups pointers
// replace the failed results.
type cleanToolRepair struct {
	options Options
	calls   readCalls
}

// repaired is the reason of the policy's edits.
const repaired = "failed, repaired later"

func (p *cleanToolRepair) Apply(v reduce.View, _ uint32, before State) Applied {
	c := newCleaning(CleanToolRepair, p.options, v)
	calls := p.calls.read(v)
	successes := successesOf(v, calls)
	open := 0
	for i := range v.Len() - p.options.keepLast(defaultKeepLast) {
		if v.Ended() != nil {
			break
		}
		if calls[i] == nil || len(calls[i].failed) == 0 || !mayTouch(v, i) {
			continue
		}
		var done []*reduce.Call
		for _, call := range calls[i].failed {
			if successes[calls[i].subject(call)] > call.Seq {
				done = append(done, call)
			} else {
				open++
			}
		}
		if g := v.Group(i); len(done) > 0 {
			c.remove(i, calls[i], done, len(done) == len(g.Calls) && !speaks(g), true, repaired)
		}
	}
	return c.applied(before, counted(open, "failures never repaired"))
}

// successesOf maps each subject, of tools that failed at least once, to the first event of the newest group in which
// a call with that subject succeeded. A repair must come after the failed result, because the model asks for it after
// it has seen that.
func successesOf(v reduce.View, calls []*groupCalls) map[string]eventlog.Seq {
	tools := map[string]bool{}
	for _, c := range calls {
		if c == nil {
			continue
		}
		for _, call := range c.failed {
			tools[call.Name] = true
		}
	}
	newest := map[string]eventlog.Seq{}
	if len(tools) == 0 {
		return newest
	}
	for i, c := range calls {
		if v.Ended() != nil {
			break
		}
		if c == nil || c.good == 0 {
			continue
		}
		for j := range c.calls {
			if call := &c.calls[j]; tools[call.Name] && !call.Interrupted && !slices.Contains(c.failed, call) {
				newest[c.subject(call)] = v.Group(i).First
			}
		}
	}
	return newest
}
