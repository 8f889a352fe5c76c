package server

import (
	"context"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/compaction"
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// CompactSession makes a session's context smaller now.
func (c *compactions) CompactSession(ctx context.Context, req *contextdv1.CompactSessionRequest) (*contextdv1.CompactSessionResponse, error) {
	if err := c.server.refuseDraining(); err != nil {
		return nil, err
	}
	if err := wire.CheckInstructions(req.GetInstructions(), req.GetInstructionsMode()); err != nil {
		return nil, err
	}
	if req.GetPolicy().GetSummarization().GetWait() != nil {
		return nil, &eventlog.InvalidError{Field: "policy.summarization.wait", Reason: "is for assemblies; a compaction waits for its summary as long as its caller does"}
	}
	session, err := c.server.existing(ctx, req.GetSessionId())
	if err != nil {
		return nil, err
	}
	policy, err := c.server.policy(session.policy, req.GetPolicy())
	if err != nil {
		return nil, err
	}
	instructions := wire.InstructionsToDomain(req.GetInstructions(), req.GetInstructionsMode())
	if instructions.Text != "" {
		policy.Summaries.Instructions = instructions
	}
	r := compaction.Request{
		Mode: req.GetMode(), Trigger: wire.TriggerToDomain(req.GetTrigger()), Instructions: instructions,
		Compaction: assemble.Compaction{
			SessionID: req.GetSessionId(),
			Request:   assemble.Request{SessionID: req.GetSessionId(), Budget: c.server.spec(session, req.GetBudget(), nil, render.NameContextd), Policy: policy},
			Measured:  req.Budget != nil || req.Policy != nil,
			Strategy:  reduce.Strategy(req.GetStrategy()), KeepLastTurns: req.GetKeepLastTurns(), TargetTokens: req.GetTargetTokens(),
			Summary: c.server.scrub.Text(req.GetSummary()),
		},
	}
	if r.Mode == "" {
		r.Mode = lifecycle.ModeManual
	}
	out, err := c.compactor.Compact(ctx, r)
	if err != nil {
		return nil, err
	}
	return outcomeToProto(out), nil
}

// UndoCompaction reverts compactions.
func (c *compactions) UndoCompaction(ctx context.Context, req *contextdv1.UndoCompactionRequest) (*contextdv1.UndoCompactionResponse, error) {
	if err := c.server.refuseDraining(); err != nil {
		return nil, err
	}
	if _, err := c.server.existing(ctx, req.GetSessionId()); err != nil {
		return nil, err
	}
	undone, err := c.compactor.Undo(ctx, req.GetSessionId(), eventlog.Seq(req.GetCompactionSeq()))
	if err != nil {
		return nil, err
	}
	if undone.Event == 0 {
		return &contextdv1.UndoCompactionResponse{Outcome: compaction.NothingToDo, Detail: "there is no compaction of a caller to undo"}, nil
	}
	return &contextdv1.UndoCompactionResponse{
		Outcome: "undone", UndoneSeqs: wire.SeqsToProto(undone.Seqs), UndoSeq: uint64(undone.Event),
	}, nil
}

func outcomeToProto(o compaction.Outcome) *contextdv1.CompactSessionResponse {
	out := &contextdv1.CompactSessionResponse{
		Outcome: o.Outcome, Detail: o.Detail, Strategy: string(o.Strategy),
		TokensBefore: o.Before.Tokens, TokensAfter: o.Before.Tokens, CompactionSeq: uint64(o.Event),
		TargetTokens: o.Target, OverTargetTokens: o.Short.Over,
	}
	for _, part := range o.Short.InTheWay {
		out.InTheWay = append(out.InTheWay, &contextdv1.IrreduciblePart{What: part.What, Seq: uint64(part.Seq), Tokens: part.Tokens})
	}
	if o.Done == nil {
		return out
	}
	out.Strategy, out.TokensAfter = string(o.Done.Strategy), o.Done.After.Tokens
	out.ArchivedMessages = uint32(max(o.Done.Archived, 0))
	out.Reminders = reminderReportToProto(o.Done.Reminders)
	if o.Done.Summary != nil {
		out.Summary = summaryToProto(*o.Done.Summary)
	}
	return out
}
