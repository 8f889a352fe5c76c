package assemble

import (
	"context"
	"reflect"
	"slices"

	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
)

// ahead caches what lookAhead found for one view: the summary that was worth making before the next cut,
// and the inputs (view, state, target, offered summaries) under which that answer holds.
type ahead struct {
	view      reduce.View
	state     reduce.State
	target    uint64
	summaries []string
	proposed  *summarize.Proposal
	pressure  decide.Pressure
}

// aheadStep is the part of the target by which a context may grow before lookAhead computes its answer
// again. It is far less than a summary must cover to be worth making, so a proposal is a turn or two late
// at most.
const aheadStep = 1.0 / 64

// nextSummary returns the summary that is worth making before the next cut; nil if none is. A conversation
// that was begun at a checkpoint may lack groups that this needs: then the whole log is read.
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

// lookAhead caches Inputs.Ahead, which goes over all groups that are shown. While a context only grows, it
// is computed once for each aheadStep of growth.
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
	if p.Reduced.Tokens() >= in.Budget.Share(in.Reduction.Collapse.StartAt) { // Ahead looks at nothing below StartAt
		now.view = now.view.Until(context.Background()) // the cached view must not keep the request's context alive
		s.ahead.put(in.Fingerprint, now, 0)
	}
	return now.proposed, now.pressure
}

// follows reports whether the cached answer known still holds for now: the view only grew, by less than
// aheadStep, and target, summaries and state are the same.
func (now ahead) follows(known ahead, in decide.Inputs) bool {
	n := known.view.Len()
	return n > 0 && now.view.Shares(known.view) == n && now.view.Tokens() < known.view.Tokens()+in.Budget.Share(aheadStep) &&
		now.target == known.target && slices.Equal(now.summaries, known.summaries) && reflect.DeepEqual(now.state, known.state)
}
