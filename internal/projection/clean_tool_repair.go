package projection

import (
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// cleanToolRepair hides failures that were repaired afterwards: a later call of the
// same tool for the same target did not fail. Where all that a group has to say is
// such failures, it leaves whole; otherwise their results alone give way to pointers.
type cleanToolRepair struct{ options Options }

// repaired is the reason of what was done.
const repaired = "failed, repaired later"

func (p cleanToolRepair) Apply(v reduce.View, _ uint32, before State) Applied {
	c := newCleaning(CleanToolRepair, p.options, v)
	failures := failuresOf(v)
	if len(failures) == 0 {
		return c.applied(before)
	}
	successes := successesOf(v, failures)
	open := 0
	for i := range v.Len() - p.options.keepLast(defaultKeepLast) {
		if !may(v, i) {
			continue
		}
		g := v.Group(i)
		var done []*reduce.Call
		for _, call := range failures[g] {
			if successes[subject(call)] > call.Seq {
				done = append(done, call)
			} else {
				open++
			}
		}
		if len(done) > 0 {
			c.take(i, done, len(done) == len(g.Calls) && !speaks(g), true, repaired)
		}
	}
	return c.applied(before, counted(open, "failures never repaired"))
}

// failuresOf lists the failed calls of each group that has any.
func failuresOf(v reduce.View) map[*reduce.Group][]*reduce.Call {
	var out map[*reduce.Group][]*reduce.Call
	for i := range v.Len() {
		g := v.Group(i)
		for j := range g.Calls {
			if !Failed(&g.Calls[j]) {
				continue
			}
			if out == nil {
				out = map[*reduce.Group][]*reduce.Call{}
			}
			out[g] = append(out[g], &g.Calls[j])
		}
	}
	return out
}

// successesOf gives for each subject that failed the first event of the newest group
// in which it succeeded. A repair was asked for after the failure was seen, so the
// event must stand behind the failed result.
func successesOf(v reduce.View, failures map[*reduce.Group][]*reduce.Call) map[string]eventlog.Seq {
	tools := map[string]bool{}
	for _, calls := range failures {
		for _, call := range calls {
			tools[call.Name] = true
		}
	}
	newest := map[string]eventlog.Seq{}
	for i := range v.Len() {
		g := v.Group(i)
		for j := range g.Calls {
			if call := &g.Calls[j]; tools[call.Name] && !call.Interrupted && !Failed(call) {
				newest[subject(call)] = g.First
			}
		}
	}
	return newest
}
