package server

import (
	"context"
	"errors"

	"google.golang.org/grpc"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/pull"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// errNoPull refuses workers for which there will be no tasks.
var errNoPull = &apierr.NotConfiguredError{Setting: "summarizers", Reason: "no summarizer of type pull is configured"}

// LeaseSummaryTasks sends tasks as they arise. A task that the worker does not complete before its
// lease ends is offered to any worker again.
func (c *compactions) LeaseSummaryTasks(req *contextdv1.LeaseSummaryTasksRequest, stream grpc.ServerStreamingServer[contextdv1.LeaseSummaryTasksResponse]) error {
	if c.tasks == nil {
		return errNoPull
	}
	if err := c.server.refuseDraining(); err != nil {
		return err
	}
	ctx, stop := c.server.untilDrained(stream.Context())
	defer stop()
	for {
		task, err := c.tasks.Lease(ctx, req.GetWorkerId(), req.GetSessionIds(), req.GetLease().AsDuration())
		if err != nil {
			return followEnd(ctx, err)
		}
		if err := stream.Send(&contextdv1.LeaseSummaryTasksResponse{Task: summaryTaskToProto(task)}); err != nil {
			return err
		}
	}
}

// CompleteSummaryTask stores the text of a task. It is also accepted while the daemon drains, since a
// model was paid for the text.
func (c *compactions) CompleteSummaryTask(ctx context.Context, req *contextdv1.CompleteSummaryTaskRequest) (*contextdv1.CompleteSummaryTaskResponse, error) {
	if c.tasks == nil {
		return nil, errNoPull
	}
	s, err := c.tasks.Complete(ctx, pull.Completion{
		TaskID:       req.GetTaskId(),
		Text:         req.GetText(),
		Error:        req.GetError(),
		InputTokens:  req.GetInputTokens(),
		OutputTokens: req.GetOutputTokens(),
		Model:        req.GetModel(),
	})
	if rejected, ok := errors.AsType[*summarize.RejectedError](err); ok {
		return nil, &eventlog.InvalidError{Field: "text", Reason: rejected.Reason}
	}
	if err != nil {
		return nil, err
	}
	out := &contextdv1.CompleteSummaryTaskResponse{}
	if s.ID != "" {
		out.Summary = summaryToProto(s)
	}
	return out, nil
}

func summaryTaskToProto(t pull.Task) *contextdv1.SummaryTask {
	return &contextdv1.SummaryTask{
		TaskId:          t.ID,
		SessionId:       t.SessionID,
		FromSeq:         uint64(t.From),
		ToSeq:           uint64(t.To),
		SystemPrompt:    t.System,
		Prompt:          t.Prompt,
		MaxOutputTokens: t.MaxOutputTokens,
		LeaseExpireTime: optionalTime(t.Expires),
	}
}

// summaryToProto names the model where one wrote the text.
func summaryToProto(s summarize.Summary) *contextdv1.Summary {
	writer := s.Model
	if writer == "" {
		writer = s.Summarizer
	}
	return &contextdv1.Summary{
		SummaryId:               s.ID,
		FromSeq:                 uint64(s.From),
		ToSeq:                   uint64(s.To),
		Text:                    s.Text,
		ToolLedger:              s.Ledger,
		IdentifierIndex:         s.Index,
		Summarizer:              writer,
		InstructionsFingerprint: s.Instructions,
		InputTokens:             s.InputTokens,
		OutputTokens:            s.OutputTokens,
		CreateTime:              optionalTime(s.Time),
		Version:                 s.Version,
	}
}
