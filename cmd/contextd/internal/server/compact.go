package server

import (
	"context"
	"slices"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/assemble"
	"github.com/contextd/contextd/cmd/contextd/internal/compact"
	"github.com/contextd/contextd/cmd/contextd/internal/lifecycle"
	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// Compactor carries out compactions; *compact.Compactor is the one there is.
type Compactor interface {
	Compact(ctx context.Context, r compact.Request) (compact.Outcome, error)
	// Forget ends what is kept, or under way, for a session that was deleted.
	Forget(sessionID string, of eventlog.Incarnation)
}

// CompactSession makes a session's context smaller now.
func (c *compactions) CompactSession(ctx context.Context, req *contextdv1.CompactSessionRequest) (*contextdv1.CompactSessionResponse, error) {
	if err := c.server.refuseDraining(); err != nil {
		return nil, err
	}
	if err := wire.CheckInstructions(req.GetInstructions(), req.GetInstructionsMode()); err != nil {
		return nil, err
	}
	session, err := c.server.existing(ctx, req.GetSessionId())
	if err != nil {
		return nil, err
	}
	policy, err := c.server.policies.Load().Resolve(session.policy, nil)
	if err != nil {
		return nil, err
	}
	if req.GetInstructions() != "" {
		policy.Summaries.Instructions = wire.InstructionsToDomain(req.GetInstructions(), req.GetInstructionsMode())
	}
	if c.compactor == nil {
		return nil, &apierr.NotConfiguredError{Setting: "summarizers", Reason: "nothing compacts here"}
	}
	r := compact.Request{
		Mode: req.GetMode(), Trigger: wire.TriggerToDomain(req.GetTrigger()),
		Compaction: assemble.Compaction{
			SessionID: req.GetSessionId(),
			Request:   assemble.Request{SessionID: req.GetSessionId(), Budget: c.server.spec(session, nil, nil, render.NameContextd), Policy: policy},
			Strategy:  reduce.Strategy(req.GetStrategy()), KeepLastTurns: req.GetKeepLastTurns(), TargetTokens: req.GetTargetTokens(),
			Summary: req.GetSummary(),
		},
	}
	if r.Mode == "" {
		r.Mode = lifecycle.ModeManual
	}
	if r.Trigger == eventlog.TriggerUnspecified {
		r.Trigger = eventlog.TriggerManual
	}
	out, err := c.compactor.Compact(ctx, r)
	if err != nil {
		return nil, err
	}
	return outcomeToProto(out), nil
}

func outcomeToProto(o compact.Outcome) *contextdv1.CompactSessionResponse {
	out := &contextdv1.CompactSessionResponse{
		Outcome: o.Outcome, Detail: o.Detail, Strategy: string(o.Strategy),
		TokensBefore: o.Before.Tokens, TokensAfter: o.Before.Tokens, CompactionSeq: uint64(o.Event),
	}
	if o.Done == nil {
		return out
	}
	out.Strategy, out.TokensAfter = string(o.Done.Strategy), o.Done.After.Tokens
	out.ArchivedMessages = uint32(max(o.Done.Archived, 0))
	out.Reminders = &contextdv1.ReminderReport{
		Expired: o.Done.Reminders.Expired, Deduped: o.Done.Reminders.Replaced, Compacted: o.Done.Reminders.Folded,
		Preserved: o.Done.Reminders.Preserved, Decremented: uint32(o.Done.Reminders.CountingDown),
	}
	if o.Done.Summary != nil {
		out.Summary = summaryToProto(*o.Done.Summary)
	}
	return out
}

// ListSummaries lists the summaries of a session, newest first.
func (c *compactions) ListSummaries(ctx context.Context, req *contextdv1.ListSummariesRequest) (*contextdv1.ListSummariesResponse, error) {
	all, err := c.server.engine.Summaries(ctx, req.GetSessionId())
	if err != nil {
		return nil, err
	}
	out := &contextdv1.ListSummariesResponse{}
	for _, s := range slices.Backward(all) {
		out.Summaries = append(out.Summaries, summaryToProto(s))
	}
	if c.summarizers == nil {
		return out, nil
	}
	for _, s := range c.summarizers() {
		out.Summarizers = append(out.Summarizers, &contextdv1.SummarizerState{
			Name: s.Summarizer, Breaker: string(s.Health), ConsecutiveFailures: uint32(s.Failures),
		})
	}
	return out, nil
}
