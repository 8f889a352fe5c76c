package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// sessionID names the session in the demo's daemon.
const sessionID = "demo"

// replay appends a session turn by turn and assembles before each model call,
// once within the budget and once with everything, for comparison.
type replay struct {
	api    contextdv1.ContextServiceClient
	budget *contextdv1.Budget
	// report is called after each turn.
	report func(*Turn) error

	ours, all held
	appended  []*contextdv1.Event // by seq - 1
	last      *received
	previous  *Turn
	evicted   map[string]string // pointer → reducer, as of the last turn
	totals    Totals
	problems  []string
}

// everything is the policy under which nothing leaves the context.
func everything() *contextdv1.Policy {
	return &contextdv1.Policy{
		ToolResults: &contextdv1.ToolResultRetention{Default: &contextdv1.Retention{Keep: &contextdv1.Retention_NeverEvict{NeverEvict: true}}},
		Duplicates:  &contextdv1.DuplicateResults{},
		Clipping:    &contextdv1.ResultClipping{},
		Thinking:    &contextdv1.ThinkingRetention{},
		Window:      &contextdv1.DialogueWindow{},
	}
}

// unlimited is the largest budget that the API takes.
const unlimited = 1_000_000_000

// run replays the session and returns the totals. The error is for what stopped
// the replay; checks that failed are in the totals.
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

// turn assembles the context of one model call both ways.
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
	turn.CostAll = all.price()
	r.check(turn, ours, all)
	r.last, r.previous = ours, turn
	return turn, nil
}

// describe says what came of a turn and what is new since the one before.
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

// reasonOf tells a forced rewrite from a chosen one. untouched is what the
// context would have weighed.
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

// check holds a turn to what the daemon promises.
func (r *replay) check(t *Turn, ours, all *received) {
	if !ours.hashOK {
		r.problem("turn %d: the messages hash to %s and the daemon says %s", t.Turn, ours.hash, ours.header.GetPrefixHash())
	}
	if !all.hashOK {
		r.problem("turn %d: the unreduced messages hash to %s and the daemon says %s", t.Turn, all.hash, all.header.GetPrefixHash())
	}
	if t.ProjectedTokens > t.TargetTokens {
		r.totals.OverTarget++
		r.problem("turn %d: %d tokens are over the target of %d", t.Turn, t.ProjectedTokens, t.TargetTokens)
	}
	if err := checkPairs(ours.messages); err != nil {
		r.totals.Orphans++
		r.problem("turn %d: %v", t.Turn, err)
	}
	if t.VisibleCalls != t.Calls {
		r.problem("turn %d: %d of %d calls are visible", t.Turn, t.VisibleCalls, t.Calls)
	}
	if ours.changed() != (t.ChangedBy != "") {
		r.problem("turn %d: %d of %d messages stand as they stood, and the daemon says that %q rewrote them", t.Turn, ours.stable, ours.before, t.ChangedBy)
	}
	if all.changed() {
		r.problem("turn %d: the unreduced context is no prefix of the next", t.Turn)
	}
	if err := checkAnchor(ours.messages, all.messages); err != nil {
		r.problem("turn %d: %v", t.Turn, err)
	}
}

// checkAnchor compares the system prompt and the first user message with what was
// said. A first user message that takes half of the target may be clipped.
func checkAnchor(ours, all []*contextdv1.RenderedMessage) error {
	for i, m := range all {
		if i >= len(ours) {
			return fmt.Errorf("the context ends within the anchor")
		}
		if ours[i].GetOrigin() != contextdv1.Origin_ORIGIN_CLIPPED && !proto.Equal(ours[i].GetMessage(), m.GetMessage()) {
			return fmt.Errorf("message %d of the anchor is not as it was said", i)
		}
		if m.GetMessage().GetRole() == contextdv1.Role_ROLE_USER {
			break
		}
	}
	return nil
}

// verify asks the daemon to make every recorded projection again, and for the
// body behind every pointer of the last context.
func (r *replay) verify(ctx context.Context) error {
	if r.last == nil {
		return nil
	}
	req := &contextdv1.ListProjectionsRequest{SessionId: sessionID}
	for {
		page, err := r.api.ListProjections(ctx, req)
		if err != nil {
			return err
		}
		for _, p := range page.GetProjections() {
			again, err := r.api.ReplayProjection(ctx, &contextdv1.ReplayProjectionRequest{SessionId: sessionID, ProjectionId: p.GetProjectionId()})
			if err != nil {
				return err
			}
			if !again.GetSame() {
				r.problem("projection %s is not made again: %s", p.GetProjectionId(), again.GetDifference())
				continue
			}
			r.totals.Replayed++
		}
		if req.PageToken = page.GetNextPageToken(); req.GetPageToken() == "" {
			break
		}
	}
	if r.totals.Replayed != r.totals.Turns {
		r.problem("%d of %d projections were made again with the same bytes", r.totals.Replayed, r.totals.Turns)
	}
	pointers := maps.Clone(r.evicted)
	for _, m := range r.last.messages {
		if m.GetOrigin() == contextdv1.Origin_ORIGIN_SUMMARY {
			_, named := ledgerOf(m.GetMessage())
			for _, p := range named {
				pointers[p] = "ledger"
			}
		}
	}
	for _, p := range slices.Sorted(maps.Keys(pointers)) {
		if err := r.resolve(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// resolve compares the body behind a pointer with what was appended.
func (r *replay) resolve(ctx context.Context, pointer string) error {
	r.totals.Pointers++
	resp, err := r.api.ResolvePointer(ctx, &contextdv1.ResolvePointerRequest{SessionId: sessionID, Pointer: pointer})
	if err != nil {
		return fmt.Errorf("%s: %w", pointer, err)
	}
	seq := resp.GetEvent().GetSeq()
	if seq == 0 || seq > uint64(len(r.appended)) {
		r.problem("%s leads to event %d", pointer, seq)
		return nil
	}
	original := r.appended[seq-1].GetMessage()
	if !proto.Equal(resp.GetEvent().GetMessage(), original) || !slices.ContainsFunc(original.GetBlocks(), func(b *contextdv1.Block) bool {
		return proto.Equal(b, resp.GetBlock())
	}) {
		r.problem("%s does not give back what was appended", pointer)
		return nil
	}
	r.totals.Resolved++
	return nil
}

func (r *replay) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}
