package server

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/compaction"
	"github.com/contextd/contextd/internal/guard"
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/pull"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// compactions implements CompactionService.
type compactions struct {
	contextdv1.UnimplementedCompactionServiceServer
	server *Server
	hooks  *lifecycle.Hooks
	events *lifecycle.Journal
	tasks  *pull.Queue // nil if no summarizer is of type pull

	compactor   *compaction.Compactor
	summarizers *summarize.Registry
}

type hookStream = grpc.BidiStreamingServer[contextdv1.ServeHooksRequest, contextdv1.ServeHooksResponse]

// ServeHooks calls a runtime before and after compactions. The response headers are sent once it is subscribed. The
// subscription ends when the runtime closes its side or sends an invalid message.
func (c *compactions) ServeHooks(stream hookStream) error {
	if err := c.server.refuseDraining(); err != nil {
		return err
	}
	want, err := receiveSubscription(stream)
	if err != nil {
		return err
	}
	drained, stop := c.server.untilDrained(stream.Context())
	defer stop()
	ctx, end := context.WithCancelCause(drained)
	defer end(nil)
	s := c.hooks.Subscribe(want)
	defer c.logLost(ctx, s)
	defer s.Close()
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	// The reader ends at the latest when this handler has returned: gRPC then cancels the stream's
	// context, which ends Recv. Nothing else does.
	go func() {
		end(guard.Run(c.server.logger, "replies of hooks", func() error { return takeReplies(stream, s) }))
	}()
	for call := range s.Calls(ctx) {
		if err := stream.Send(&contextdv1.ServeHooksResponse{Call: hookCallToProto(call)}); err != nil {
			return err
		}
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, io.EOF):
		return nil
	case errors.Is(cause, errDrained):
		return apierr.ErrDraining
	default:
		return cause
	}
}

func (c *compactions) logLost(ctx context.Context, s *lifecycle.Subscriber) {
	if n := s.Lost(); n > 0 {
		c.server.logger.WarnContext(ctx, "a runtime missed reports of compactions because it was too slow", "lost", n)
	}
}

func receiveSubscription(stream hookStream) (lifecycle.Subscription, error) {
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) || err == nil && first.GetSubscribe() == nil {
		return lifecycle.Subscription{}, &eventlog.InvalidError{Field: "subscribe", Reason: "must be the first message"}
	}
	if err != nil {
		return lifecycle.Subscription{}, err
	}
	m := first.GetSubscribe()
	if !m.GetPreCompact() && !m.GetPostCompact() {
		return lifecycle.Subscription{}, &eventlog.InvalidError{Field: "subscribe.pre_compact", Reason: "must be set, or post_compact, or both"}
	}
	return lifecycle.Subscription{
		Sessions:    m.GetSessionIds(),
		PreCompact:  m.GetPreCompact(),
		PostCompact: m.GetPostCompact(),
		Deadline:    m.GetDeadline().AsDuration(),
	}, nil
}

// takeReplies passes replies to the subscriber until the stream ends or a reply is invalid.
func takeReplies(stream hookStream, s *lifecycle.Subscriber) error {
	for {
		req, err := stream.Recv()
		if err != nil {
			return err
		}
		if req.GetReply() == nil {
			return &eventlog.InvalidError{Field: "subscribe", Reason: "must come once, before the replies"}
		}
		if err := s.Reply(hookReplyToDomain(req.GetReply())); err != nil {
			return wire.Under("reply", err)
		}
	}
}

func hookReplyToDomain(m *contextdv1.HookReply) lifecycle.Reply {
	return lifecycle.Reply{
		CallID:        m.GetCallId(),
		Decision:      lifecycle.Decision(m.GetDecision()),
		Reason:        m.GetReason(),
		KeepLastTurns: m.KeepLastTurns,
		TargetTokens:  m.TargetTokens,
		Strategy:      m.GetStrategy(),
	}
}

func hookCallToProto(c lifecycle.Call) *contextdv1.HookCall {
	m := &contextdv1.HookCall{
		CallId:        c.ID,
		Hook:          string(c.Hook),
		SessionId:     c.SessionID,
		Mode:          c.Mode,
		Trigger:       contextdv1.CompactionTrigger(c.Trigger),
		Strategy:      c.Terms.Strategy,
		KeepLastTurns: c.Terms.KeepLastTurns,
		TargetTokens:  c.Terms.TargetTokens,
		MessageCount:  c.MessageCount,
		TokensBefore:  c.TokensBefore,

		Policy:             c.Policy,
		InstructionsSource: c.Instructions.Source,
		InstructionsMode:   c.Instructions.Mode,
	}
	if r := c.Result; r != nil {
		m.RemainingMessages = r.RemainingMessages
		m.ArchivedMessages = r.ArchivedMessages
		m.TokensAfter = r.TokensAfter
		m.Summary = r.Summary
		m.Reminders = reminderReportToProto(r.Reminders)
	}
	return m
}

func reminderReportToProto(r lifecycle.ReminderReport) *contextdv1.ReminderReport {
	return &contextdv1.ReminderReport{
		Expired: r.Expired, Deduped: r.Deduped, Compacted: r.Compacted, Preserved: r.Preserved, Decremented: r.Decremented,
	}
}
