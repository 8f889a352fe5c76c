package projection

import "github.com/contextd/contextd/internal/reduce"

// squashFailedCalls drops turns in which all calls failed and nothing else was said. All other turns stay
// as they are.
type squashFailedCalls struct {
	options Options
	calls   readCalls
}

func (p *squashFailedCalls) Apply(v reduce.View, _ uint32, before State) Applied {
	c := newCleaning(SquashFailed, p.options, v)
	calls := p.calls.read(v)
	mixed := 0
	for i := range v.Len() - p.options.keepLast(defaultKeepLast) {
		if v.Ended() != nil {
			break
		}
		if calls[i] == nil || len(calls[i].failed) == 0 || !mayTouch(v, i) {
			continue
		}
		if g := v.Group(i); len(calls[i].failed) < len(g.Calls) || speaks(g) {
			mixed++
		} else {
			c.remove(i, calls[i], calls[i].failed, true, false, "all failed")
		}
	}
	return c.applied(before, counted(mixed, "turns with failures have another outcome, too"))
}
