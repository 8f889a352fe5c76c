package projection

import (
	"fmt"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
	"github.com/contextd/contextd/internal/reduce"
)

// SafetyBlocked begins Applied.Reason if signatures prevented some of the policy's changes.
const SafetyBlocked = "provider_safety_blocked"

// safety says which changes providers permit for the groups of a view, and counts the groups that a policy would
// change but must not.
type safety struct {
	view   reduce.View
	ignore bool
	// loop is the index of the newest user group, which begins the open tool-use loop. thought is the first
	// group after it whose sealed reasoning needs the loop to stay open, which a text would end; the view's
	// length if there is none.
	loop, thought int

	blocked int
	last    int // index of the group that was counted last
	first   eventlog.Seq
	why     string
}

func newSafety(v reduce.View, o Options) *safety {
	s := &safety{view: v, ignore: o.IgnoreSignatures, loop: v.LastUser(), last: -1}
	for s.thought = s.loop + 1; s.thought < v.Len(); s.thought++ {
		if g := v.Group(s.thought); g.Sealed && g.SealedBy().Seals().TextEndsLoop {
			break
		}
	}
	return s
}

// of returns what may be done to group i if a policy that drops it replaces it by lines for its calls.
func (s *safety) of(i int) provider.Allowed {
	a := s.alone(i)
	if i > s.thought && !s.ignore && len(s.view.Group(i).Calls) > 0 {
		a.Whole = false
	}
	return a
}

// alone returns what may be done to group i if nothing replaces it when it is dropped.
func (s *safety) alone(i int) provider.Allowed {
	g := s.view.Group(i)
	if !g.Sealed {
		return provider.Allowed{Whole: true, Results: true}
	}
	rules := g.SealedBy().Seals()
	a := rules.Before
	if i > s.loop {
		a = rules.InLoop
	}
	a.Whole = a.Whole || s.ignore
	return a
}

// block counts group i as one that the policy would change but for a provider's rules.
func (s *safety) block(i int) {
	if i == s.last {
		return
	}
	s.last = i
	if s.blocked++; s.blocked > 1 {
		return
	}
	g := s.view.Group(i)
	s.first = g.First
	switch by := g.SealedBy(); {
	case !g.Sealed:
		s.why = "a line in its place would end the tool-use loop that sealed reasoning began"
	case by == provider.Unknown:
		s.why = "nobody knows who sealed its reasoning"
	case i > s.loop:
		s.why = fmt.Sprintf("reasoning that %s sealed stays while its tool-use loop is open", by)
	}
}

// reason says what was prevented and why; empty if nothing was.
func (s *safety) reason() string {
	if s.blocked == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %d groups show more than the policy says, the first at event %d: %s", SafetyBlocked, s.blocked, s.first, s.why)
}
