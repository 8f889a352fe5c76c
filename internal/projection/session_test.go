package projection_test

import (
	"reflect"
	"slices"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

var gauge = reducetest.Gauge

// session shows a growing log under a policy, request by request, and holds every
// view against the invariants.
type session struct {
	head   eventlog.Head
	events []eventlog.Event
	conv   *reduce.Conversation
	// reduced and shown are the states after the last request.
	reduced reduce.State
	shown   projection.State
	last    *request
}

// request is a view and what it was made from.
type request struct {
	reduced reduce.State
	groups  []*reduce.Group
	view    reduce.View
	applied projection.Applied
}

func newSession() *session { return &session{conv: reduce.NewConversation(gauge)} }

func (s *session) append(events ...eventlog.Event) error {
	head, admitted, err := s.head.Admit(events)
	if err != nil {
		return err
	}
	s.head = head
	s.events = append(s.events, admitted...)
	for _, e := range admitted {
		s.conv.Append(e)
	}
	return nil
}

// request reduces the conversation to a budget (not at all if its target is 0), applies the policy, and
// checks all invariants.
func (s *session) request(t fataler, o projection.Options, policy projection.Policy, b budget.Budget) (request, error) {
	view := reduce.NewView(gauge, s.conv.Groups())
	reduced := s.reduced
	if b.Target > 0 {
		pipeline := reduce.NewPipeline(reducetest.Policy(), s.conv)
		if p, ok := policy.(projection.Rooted); ok {
			pipeline.Protect(p.Named)
		}
		r, err := pipeline.Run(b, s.reduced, reduce.Ask{})
		if err != nil {
			return request{}, err
		}
		view, reduced = r.View, r.State
	}
	before := reducetest.Bytes(view)
	got := policy.Apply(view, s.conv.Turns(), s.shown)
	if !slices.Equal(before, reducetest.Bytes(view)) {
		t.Fatalf("the policy changed the view that it was given")
	}
	fresh, err := projection.New(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if again := fresh.Apply(view, s.conv.Turns(), s.shown); !reflect.DeepEqual(got, again) {
		t.Fatalf("a fresh policy gives something else:\n%v\n%v", linesOf(got.View), linesOf(again.View))
	}
	r := request{reduced: reduced, groups: slices.Clone(s.conv.Groups()), view: view, applied: got}
	checkApplied(t, s.conv, o, r)
	s.reduced, s.shown, s.last = reduced, got.State, &r
	return r, nil
}
