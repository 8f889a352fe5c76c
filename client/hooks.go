package client

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// Hooks are what a runtime does before and after compactions.
type Hooks struct {
	// SessionIDs are the sessions to serve, at most 1000. Empty: all.
	SessionIDs []string
	// Deadline is how long the daemon waits for a reply, at most a minute. 0: the daemon's default.
	Deadline time.Duration
	// PreCompact is called before a compaction, and decides on it; a nil reply allows it. nil: the
	// daemon does not ask.
	PreCompact func(context.Context, *contextdv1.HookCall) (*contextdv1.HookReply, error)
	// PostCompact is called after a compaction. nil: the daemon does not report it.
	PostCompact func(context.Context, *contextdv1.HookCall) error
}

type hookStream = grpc.BidiStreamingClient[contextdv1.ServeHooksRequest, contextdv1.ServeHooksResponse]

// RunHooks serves hooks until ctx ends, the daemon refuses the subscription, or a hook returns an
// error. If the connection breaks, it subscribes again. Calls of several sessions run concurrently.
// RunHooks unsubscribes when it returns: compactions then go on without these hooks.
func (c *Client) RunHooks(ctx context.Context, h Hooks) error {
	subscription := &contextdv1.HookSubscription{
		SessionIds: h.SessionIDs, PreCompact: h.PreCompact != nil, PostCompact: h.PostCompact != nil,
	}
	if h.Deadline > 0 {
		subscription.Deadline = durationpb.New(h.Deadline)
	}
	if ctx == nil {
		return errNoContext
	}
	calls, ctx := errgroup.WithContext(ctx)
	var stream hookStream
	var sending sync.Mutex
	calls.Go(func() (failed error) {
		resuming(ctx, c.patience, func(ctx context.Context) (grpc.ServerStreamingClient[contextdv1.ServeHooksResponse], error) {
			var err error
			if stream, err = c.ServeHooks(ctx); err != nil {
				return nil, err
			}
			// If sending fails, receiving returns the reason.
			_ = stream.Send(&contextdv1.ServeHooksRequest{Part: &contextdv1.ServeHooksRequest_Subscribe{Subscribe: subscription}})
			return stream, nil
		}, func(part *contextdv1.ServeHooksResponse) bool {
			caller := stream
			calls.Go(func() error {
				reply, err := h.call(ctx, part.GetCall())
				if err != nil || reply == nil {
					return err
				}
				sending.Lock()
				defer sending.Unlock()
				_ = caller.Send(&contextdv1.ServeHooksRequest{Part: &contextdv1.ServeHooksRequest_Reply{Reply: reply}})
				return nil
			})
			return true
		}, func(err error) { failed = err })
		return failed
	})
	return calls.Wait()
}

// call runs a hook. Only one before a compaction has a reply.
func (h *Hooks) call(ctx context.Context, call *contextdv1.HookCall) (*contextdv1.HookReply, error) {
	if call.GetHook() == "post_compact" {
		return nil, h.PostCompact(ctx, call)
	}
	reply, err := h.PreCompact(ctx, call)
	if err != nil {
		return nil, err
	}
	if reply == nil {
		reply = &contextdv1.HookReply{}
	}
	reply.CallId = call.GetCallId()
	return reply, nil
}

// RunSummaries writes the summaries that the daemon asks for, one after another, until ctx ends or
// the daemon refuses a call. An error of write is reported to the daemon as that of the task. If the
// connection breaks, it asks for tasks again.
func (c *Client) RunSummaries(ctx context.Context, req *contextdv1.LeaseSummaryTasksRequest, write func(context.Context, *contextdv1.SummaryTask) (*contextdv1.CompleteSummaryTaskRequest, error)) (failed error) {
	if write == nil {
		return errors.New("the function that writes summaries must not be nil")
	}
	resuming(ctx, c.patience, func(ctx context.Context) (grpc.ServerStreamingClient[contextdv1.LeaseSummaryTasksResponse], error) {
		return c.LeaseSummaryTasks(ctx, req)
	}, func(part *contextdv1.LeaseSummaryTasksResponse) bool {
		done, err := write(ctx, part.GetTask())
		if err != nil {
			done = &contextdv1.CompleteSummaryTaskRequest{Error: err.Error()}
		}
		done = cmp.Or(done, &contextdv1.CompleteSummaryTaskRequest{}) // refused as an empty summary
		done.TaskId = part.GetTask().GetTaskId()
		_, failed = c.CompleteSummaryTask(ctx, done)
		return failed == nil
	}, func(err error) { failed = err })
	return failed
}
