package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// sessionID is the session's id in the demo's daemon.
const sessionID = "demo"

// replay appends a session turn by turn. Before each model call it assembles two contexts: one within the
// budget, and one with everything for comparison.
type replay struct {
	api    contextdv1.ContextServiceClient
	watch  *watch
	budget *contextdv1.Budget
	// report is called after each turn.
	report func(*Turn) error

	ours, all held
	appended  []*contextdv1.Event // by seq - 1
	last      *received
	previous  *Turn
	evicted   map[string]string // pointer → reducer, in the last context
	totals    Totals
	problems  []string
}

// everything is a policy that drops nothing.
func everything() *contextdv1.Policy {
	return &contextdv1.Policy{
		ToolResults: &contextdv1.ToolResultRetention{Default: &contextdv1.Retention{Keep: &contextdv1.Retention_NeverEvict{NeverEvict: true}}},
		Duplicates:  &contextdv1.DuplicateResults{},
		Clipping:    &contextdv1.ResultClipping{},
		Thinking:    &contextdv1.ThinkingRetention{},
		Window:      &contextdv1.DialogueWindow{},
	}
}

// unlimited is the largest budget that the API accepts.
const unlimited = 1_000_000_000

// run replays the session and returns the totals. The error is for what stopped the replay; failed checks are
// in the totals.
func (r *replay) run(ctx context.Context, events []*contextdv1.Event) (*Totals, error) {
	steps, rest := split(events)
	for i, s := range steps {
		if err := r.append(ctx, s.events); err != nil {
			return nil, fmt.Errorf("turn %d: %w", i+1, err)
		}
		turn, err := r.turn(ctx, i+1, s)
		if err != nil {
			return nil, fmt.Errorf("turn %d: %w", i+1, err)
		}
		r.totals.add(turn)
		if err := r.report(turn); err != nil {
			return nil, err
		}
	}
	if err := r.append(ctx, rest); err != nil {
		return nil, err
	}
	if err := r.verify(ctx); err != nil {
		return nil, err
	}
	r.totals.Problems = r.problems
	return &r.totals, nil
}

func (r *replay) append(ctx context.Context, events []*contextdv1.Event) error {
	if len(events) == 0 {
		return nil
	}
	head := uint64(len(r.appended))
	resp, err := r.api.AppendEvents(ctx, &contextdv1.AppendEventsRequest{SessionId: sessionID, Events: events, ExpectedHead: &head})
	if err != nil {
		return err
	}
	if want := head + uint64(len(events)); resp.GetFirstSeq() != head+1 || resp.GetLastSeq() != want {
		r.problem("events %d to %d were appended as %d to %d", head+1, want, resp.GetFirstSeq(), resp.GetLastSeq())
	}
	r.appended = append(r.appended, events...)
	return nil
}

// turn assembles both contexts of one model call.
func (r *replay) turn(ctx context.Context, n int, s step) (*Turn, error) {
	ours, err := r.ours.fetch(ctx, r.api, &contextdv1.AssembleContextRequest{SessionId: sessionID, Budget: r.budget})
	if err != nil {
		return nil, err
	}
	all, err := r.all.fetch(ctx, r.api, &contextdv1.AssembleContextRequest{
		SessionId: sessionID, Preview: true, Policy: everything(),
		Budget: &contextdv1.Budget{MaxTokens: unlimited, Tokenizer: r.budget.GetTokenizer()},
	})
	if err != nil {
		return nil, fmt.Errorf("without reduction: %w", err)
	}
	turn := r.describe(n, s, ours)
	if through := ours.header.GetSummarizingThroughSeq(); through > 0 {
		if err := r.watch.summary(through); err != nil {
			return nil, err
		}
		turn.SummaryReady = through
	}
	turn.CostAll = all.price()
	r.check(turn, ours, all)
	r.last, r.previous = ours, turn
	return turn, nil
}

// describe reports a turn, and what was dropped since the last one.
func (r *replay) describe(n int, s step, c *received) *Turn {
	h := c.header
	t := &Turn{
		Turn: n, AsOfSeq: h.GetAsOfSeq(), User: s.user,
		State: stateName(h.GetBudget().GetState()), TargetTokens: h.GetBudget().GetTargetTokens(),
		RawTokens: h.GetBudget().GetRawTokens(), ProjectedTokens: h.GetBudget().GetProjectedTokens(),
		Messages: len(c.messages), SentMessages: c.sent,
		StableTokens: h.GetCache().GetStableTokens(), StableMessages: c.stable, StableShare: 1, ChangedBy: h.GetCache().GetBrokenBy(),
		Calls: callsOf(r.appended), VisibleCalls: visibleCalls(c.messages),
		PrefixHash: c.hash, HashOK: c.hashOK, Cost: c.price(),
	}
	now := map[string]string{}
	for _, p := range h.GetProjection().GetRedactionPointers() {
		now[p.GetPointer()] = p.GetPolicy()
		if r.evicted[p.GetPointer()] != p.GetPolicy() {
			if t.Evicted == nil {
				t.Evicted = map[string]int{}
			}
			t.Evicted[p.GetPolicy()]++
		}
	}
	r.evicted = now
	t.Collapsed = int(h.GetProjection().GetDroppedCount())
	if id := h.GetProjection().GetSummaryId(); r.last == nil || id != r.last.header.GetProjection().GetSummaryId() {
		t.Summary = id
	}
	untouched := t.RawTokens
	if r.previous != nil {
		t.Collapsed -= int(r.last.header.GetProjection().GetDroppedCount())
		untouched = r.previous.ProjectedTokens + t.RawTokens - r.previous.RawTokens
		if r.last.bytes > 0 {
			t.StableShare = float64(c.common) / float64(r.last.bytes)
		}
	}
	t.FreedTokens = untouched - min(untouched, t.ProjectedTokens)
	t.Reason = reasonOf(t, untouched, h.GetProjection().GetSteps())
	return t
}

// reasonOf is why a turn reduced. untouched is the size that the context would have had without it.
func reasonOf(t *Turn, untouched uint64, steps []*contextdv1.ReducerStep) Reason {
	switch {
	case untouched > t.TargetTokens:
		return Full
	case t.ChangedBy == "":
		return ""
	case slices.ContainsFunc(steps, func(s *contextdv1.ReducerStep) bool { return strings.Contains(s.GetNote(), "cache has expired") }):
		return Cold
	default:
		return Batch
	}
}

func (r *replay) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}
