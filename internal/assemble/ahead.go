package assemble

import (
	"context"
	"reflect"
	"slices"

	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
)

// ahead is the summary that was worth making before the next cut of what was shown, and what it
// rests on.
type ahead struct {
	view      reduce.View
	state     reduce.State
	target    uint64
	summaries []string
	proposed  *summarize.Proposal
	pressure  decide.Pressure
}

// aheadStep is the part of the target by which a context grows before it is looked ahead again. It is
// less than what a summary must cover to be worth making by far, so that one is proposed a turn or two
// later at most.
const aheadStep = 1.0 / 64

// nextSummary is the summary that is worth making before the next cut. A conversation that was begun at its
// digest may have too little to say so: the whole log is read then.
func (e *Engine) nextSummary(ctx context.Context, s *session, in decide.Inputs, p decide.Projected) (*summarize.Proposal, decide.Pressure, error) {
	proposed, pressure := s.lookAhead(in, p)
	if !in.Conversation.Incomplete() {
		return proposed, pressure, nil
	}
	asOf := in.Conversation.Head()
	var err error
	if in.Conversation, err = s.shown(ctx, e.store, in.Conversation.Gauge(), &asOf, in.Projection, ""); err != nil {
		return nil, decide.Pressure{}, err
	}
	if p, err = in.Run(); err != nil {
		return nil, decide.Pressure{}, err
	}
	proposed, pressure = in.Ahead(p)
	return proposed, pressure, nil
}

// lookAhead is Inputs.Ahead, which goes over all that is shown: while a context only grows, it is
// asked again with each step.
func (s *session) lookAhead(in decide.Inputs, p decide.Projected) (*summarize.Proposal, decide.Pressure) {
	now := ahead{view: p.Reduced, state: p.Result.State, target: in.Budget.Target}
	now.state.AskedAsOf = 0
	for _, offered := range in.Summaries {
		now.summaries = append(now.summaries, offered.ID)
	}
	if known, ok := s.ahead.get(in.Fingerprint); ok && now.follows(known, in) {
		if known.proposed != nil {
			known.pressure.Messages, known.pressure.Tokens = p.Messages(), p.Tokens()
		}
		return known.proposed, known.pressure
	}
	now.proposed, now.pressure = in.Ahead(p)
	if p.Reduced.Tokens() >= in.Budget.Share(in.Reduction.Collapse.StartAt) { // else nothing was looked at
		now.view = now.view.Until(context.Background()) // it would keep the request
		s.ahead.put(in.Fingerprint, now, 0)
	}
	return now.proposed, now.pressure
}

// follows reports whether what was found ahead of another is what is ahead of this, but for less than
// a step.
func (now ahead) follows(known ahead, in decide.Inputs) bool {
	n := known.view.Len()
	return n > 0 && now.view.Shares(known.view) == n && now.view.Tokens() < known.view.Tokens()+in.Budget.Share(aheadStep) &&
		now.target == known.target && slices.Equal(now.summaries, known.summaries) && reflect.DeepEqual(now.state, known.state)
}
