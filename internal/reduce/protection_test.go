package reduce_test

import (
	"path"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// checkProtected checks that no reducer but the last resort took a result that was in full,
// or is new, and that is never evicted or named by a root. What was at the front because no human had
// spoken goes the way of its run once one does.
func (s *session) checkProtected(t fataler, p reduce.Policy, now reduce.Result) {
	was, asked := map[eventlog.Place]bool{}, s.state.AskedAsOf
	if s.last != nil {
		was = inFull(s.last.result.View)
		anchors := map[eventlog.Seq]bool{}
		for _, g := range s.conv.Groups() {
			anchors[g.First] = g.Anchor
		}
		for _, g := range s.last.groups {
			for c := range g.Calls {
				if g.Anchor && !anchors[g.First] {
					delete(was, g.Calls[c].Place())
				}
			}
		}
	}
	is := inFull(now.View)
	d := s.conv.Decided()
	for _, g := range s.conv.Groups() {
		for c := range g.Calls {
			call := &g.Calls[c]
			at := call.Place()
			due := neverEvicted(p, call.Name) || s.names(call) && (was[at] || call.Seq > asked && g.First > s.state.CollapsedThrough)
			if due && !call.Interrupted && !is[at] && at.Seq > now.State.Released && !d.Drops(g) && !d.Masks(at) {
				t.Fatalf("the result at %v is protected and is not in full: %+v\n%s", at, now.State, now.Steps[0].Note)
			}
		}
	}
	if now.State.Released > s.state.Released && !strings.Contains(now.Steps[0].Note, "protected results") {
		t.Fatalf("what is protected was given up, and the record does not say so: %+v", now.Steps)
	}
}

// inFull are the results that a view shows as they are.
func inFull(v reduce.View) map[eventlog.Place]bool {
	out := map[eventlog.Place]bool{}
	for i := range v.Len() {
		g := v.Group(i)
		for c := range g.Calls {
			if _, edited := v.Edit(i, g.Calls[c].Result, 0); !edited {
				out[g.Calls[c].Place()] = true
			}
		}
	}
	return out
}

// neverEvicted reports whether the policy says so of a tool that it names.
func neverEvicted(p reduce.Policy, tool string) bool {
	named := false
	for pattern := range p.ToolResults.ByTool {
		ok, err := path.Match(pattern, tool)
		named = named || pattern == tool || ok && err == nil
	}
	return named && p.ToolResults.Rule(tool).Never
}
