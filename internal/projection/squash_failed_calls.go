package projection

import "github.com/contextd/contextd/internal/reduce"

// squashFailedCalls lets turns leave whose only outcome was failed calls. A turn in
// which anything was said, or any call did not fail, stays as it is.
type squashFailedCalls struct{ options Options }

func (p squashFailedCalls) Apply(v reduce.View, _ uint32, before State) Applied {
	c := newCleaning(SquashFailed, p.options, v)
	mixed := 0
	for i := range v.Len() - p.options.keepLast(defaultKeepLast) {
		if !may(v, i) {
			continue
		}
		g := v.Group(i)
		var failed []*reduce.Call
		for j := range g.Calls {
			if Failed(&g.Calls[j]) {
				failed = append(failed, &g.Calls[j])
			}
		}
		switch {
		case len(failed) == 0:
		case len(failed) < len(g.Calls) || speaks(g):
			mixed++
		default:
			c.take(i, failed, true, false, "all failed")
		}
	}
	return c.applied(before, counted(mixed, "turns with failures have another outcome, too"))
}
