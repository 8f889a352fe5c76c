package server_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/server"
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

type hookStream = contextdv1.CompactionService_ServeHooksClient

// serveHooks serves an API with hooks that block on a timeout, an hour after they
// called: whoever allows a compaction here did so.
func serveHooks(t *testing.T) (*api, *lifecycle.Hooks) {
	t.Helper()
	hooks := lifecycle.NewHooks(lifecycle.HooksOptions{Deadline: time.Hour, OnTimeout: lifecycle.Block})
	return serve(t, stores["memory"](t), func(o *server.Options) { o.Hooks = hooks }), hooks
}

// subscribe returns a stream that is subscribed.
func (a *api) subscribe(ctx context.Context, t *testing.T, want *contextdv1.HookSubscription) hookStream {
	t.Helper()
	stream, err := a.compaction.ServeHooks(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&contextdv1.ServeHooksRequest{Part: &contextdv1.ServeHooksRequest_Subscribe{Subscribe: want}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Header(); err != nil {
		t.Fatal(err)
	}
	return stream
}

func called(t *testing.T, stream hookStream) *contextdv1.HookCall {
	t.Helper()
	resp, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetCall()
}

func reply(t *testing.T, stream hookStream, r *contextdv1.HookReply) {
	t.Helper()
	if err := stream.Send(&contextdv1.ServeHooksRequest{Part: &contextdv1.ServeHooksRequest_Reply{Reply: r}}); err != nil {
		t.Fatal(err)
	}
}

// verdict asks in the background.
func verdict(t *testing.T, hooks *lifecycle.Hooks, c lifecycle.Call) <-chan lifecycle.Verdict {
	t.Helper()
	out := make(chan lifecycle.Verdict, 1)
	go func() {
		v, err := hooks.PreCompact(t.Context(), c)
		if err != nil {
			t.Error(err)
		}
		out <- v
	}()
	return out
}

// aCompaction sets every field.
func aCompaction() lifecycle.Call {
	return lifecycle.Call{
		SessionID: "s", Mode: lifecycle.ModeAuto, Trigger: eventlog.TriggerBudgetPressure,
		Terms:        lifecycle.Terms{Strategy: "summarize", KeepLastTurns: 5, TargetTokens: 8000},
		MessageCount: 40, TokensBefore: 9000, Policy: "raw",
		Instructions: lifecycle.Instructions{Source: lifecycle.FromPolicy, Mode: "extend"},
	}
}

func TestHooks(t *testing.T) {
	a, hooks := serveHooks(t)
	stream := a.subscribe(t.Context(), t, &contextdv1.HookSubscription{SessionIds: []string{"s"}, PreCompact: true, PostCompact: true})
	asked := verdict(t, hooks, aCompaction())
	call := called(t, stream)
	if call.GetCallId() == "" {
		t.Error("the call has no id")
	}
	want := &contextdv1.HookCall{
		CallId: call.GetCallId(), Hook: "pre_compact", SessionId: "s", Mode: "auto",
		Trigger:  contextdv1.CompactionTrigger_COMPACTION_TRIGGER_BUDGET_PRESSURE,
		Strategy: "summarize", KeepLastTurns: 5, TargetTokens: 8000, MessageCount: 40, TokensBefore: 9000,
		Policy: "raw", InstructionsSource: "policy", InstructionsMode: "extend",
	}
	if !proto.Equal(call, want) {
		t.Errorf("before it the runtime is told\n%v; want\n%v", call, want)
	}
	reply(t, stream, &contextdv1.HookReply{
		CallId: call.GetCallId(), Decision: "modify", Reason: "keep the plan",
		KeepLastTurns: proto.Uint32(7), TargetTokens: proto.Uint64(6000), Strategy: "window",
	})
	terms := lifecycle.Terms{Strategy: "window", KeepLastTurns: 7, TargetTokens: 6000}
	if v := <-asked; v != (lifecycle.Verdict{Decision: lifecycle.Modify, Reason: "keep the plan", Terms: terms}) {
		t.Errorf("the verdict is %+v", v)
	}

	done := aCompaction()
	done.Terms = terms
	done.Result = &lifecycle.Result{
		RemainingMessages: 12, ArchivedMessages: 28, TokensAfter: 3000, Summary: "so far",
		Reminders: lifecycle.ReminderReport{
			Expired: []string{"a"}, Deduped: []string{"b"}, Compacted: []string{"c"}, Preserved: []string{"d", "e"}, Decremented: 2,
		},
	}
	hooks.PostCompact(done)
	call = called(t, stream)
	want.CallId, want.Hook, want.Strategy, want.KeepLastTurns, want.TargetTokens = call.GetCallId(), "post_compact", "window", 7, 6000
	want.RemainingMessages, want.ArchivedMessages, want.TokensAfter, want.Summary = 12, 28, 3000, "so far"
	want.Reminders = &contextdv1.ReminderReport{
		Expired: []string{"a"}, Deduped: []string{"b"}, Compacted: []string{"c"}, Preserved: []string{"d", "e"}, Decremented: 2,
	}
	if !proto.Equal(call, want) {
		t.Errorf("after it the runtime is told\n%v; want\n%v", call, want)
	}
}

// TestTriggersAgree: the API numbers triggers as the log does.
func TestTriggersAgree(t *testing.T) {
	a, hooks := serveHooks(t)
	stream := a.subscribe(t.Context(), t, &contextdv1.HookSubscription{PostCompact: true})
	for domain, api := range map[eventlog.CompactionTrigger]contextdv1.CompactionTrigger{
		eventlog.TriggerUnspecified:    contextdv1.CompactionTrigger_COMPACTION_TRIGGER_UNSPECIFIED,
		eventlog.TriggerManual:         contextdv1.CompactionTrigger_COMPACTION_TRIGGER_MANUAL,
		eventlog.TriggerThreshold:      contextdv1.CompactionTrigger_COMPACTION_TRIGGER_THRESHOLD,
		eventlog.TriggerBudgetPressure: contextdv1.CompactionTrigger_COMPACTION_TRIGGER_BUDGET_PRESSURE,
	} {
		hooks.PostCompact(lifecycle.Call{SessionID: "s", Mode: lifecycle.ModeHost, Trigger: domain, Result: &lifecycle.Result{}})
		if got := called(t, stream).GetTrigger(); got != api {
			t.Errorf("%d became %s; want %s", domain, got, api)
		}
	}
}

// TestSeveralRuntimes are asked in their order; the first block ends it.
func TestSeveralRuntimes(t *testing.T) {
	a, hooks := serveHooks(t)
	var streams []hookStream
	for range 4 {
		streams = append(streams, a.subscribe(t.Context(), t, &contextdv1.HookSubscription{PreCompact: true, PostCompact: true}))
	}
	asked := verdict(t, hooks, aCompaction())
	reply(t, streams[0], &contextdv1.HookReply{CallId: called(t, streams[0]).GetCallId()})
	reply(t, streams[1], &contextdv1.HookReply{CallId: called(t, streams[1]).GetCallId(), Decision: "modify", KeepLastTurns: proto.Uint32(9)})
	third := called(t, streams[2])
	if third.GetKeepLastTurns() != 9 || third.GetTargetTokens() != 8000 {
		t.Errorf("the third sees %v; want what the second left", third)
	}
	reply(t, streams[2], &contextdv1.HookReply{CallId: third.GetCallId(), Decision: "block", Reason: "in the middle of something"})
	if v := <-asked; v.Decision != lifecycle.Block || v.Reason != "in the middle of something" {
		t.Errorf("the verdict is %+v", v)
	}
	hooks.PostCompact(aCompaction())
	for i, stream := range streams {
		if call := called(t, stream); call.GetHook() != "post_compact" {
			t.Errorf("runtime %d is told %v next; want post_compact", i, call)
		}
	}
}

// TestHookDeadline is the runtime's own; a late reply is passed over, and the next
// one counts.
func TestHookDeadline(t *testing.T) {
	a, hooks := serveHooks(t)
	stream := a.subscribe(t.Context(), t, &contextdv1.HookSubscription{PreCompact: true, PostCompact: true, Deadline: durationpb.New(time.Millisecond)})
	v := <-verdict(t, hooks, aCompaction())
	if v.Decision != lifecycle.Block || v.Reason != "a hook did not answer within 1ms" || hooks.Overdue() != 1 {
		t.Errorf("the verdict is %+v", v)
	}
	// The call may be on its way, or may have been withdrawn before it was sent.
	hooks.PostCompact(aCompaction())
	call := called(t, stream)
	if call.GetHook() == "pre_compact" {
		reply(t, stream, &contextdv1.HookReply{CallId: call.GetCallId()})
		call = called(t, stream)
	}
	if call.GetHook() != "post_compact" {
		t.Errorf("the next call is %v", call)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
}

// TestARuntimeLeavesWhileItIsAsked, in every way there is: the session goes on, and
// the next compaction asks nobody.
func TestARuntimeLeavesWhileItIsAsked(t *testing.T) {
	for name, test := range map[string]struct {
		leave func(t *testing.T, a *api, stream hookStream, cancel context.CancelFunc)
		// end is what the runtime sees, if it looks.
		end badInput
	}{
		"it is cut off": {
			leave: func(_ *testing.T, _ *api, _ hookStream, cancel context.CancelFunc) { cancel() },
			end:   badInput{code: codes.Canceled},
		},
		"it closes its side": {
			leave: func(t *testing.T, _ *api, stream hookStream, _ context.CancelFunc) {
				if err := stream.CloseSend(); err != nil {
					t.Error(err)
				}
			},
			end: badInput{code: codes.OK},
		},
		"it talks nonsense": {
			leave: func(t *testing.T, _ *api, stream hookStream, _ context.CancelFunc) {
				reply(t, stream, &contextdv1.HookReply{CallId: "soup", Decision: "block"})
			},
			end: badInput{code: codes.InvalidArgument, reason: invalid, field: "reply.call_id"},
		},
		"the daemon drains": {
			leave: func(_ *testing.T, a *api, _ hookStream, _ context.CancelFunc) { a.server.Drain() },
			end:   badInput{code: codes.Unavailable, reason: apierr.ReasonDraining},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, hooks := serveHooks(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stream := a.subscribe(ctx, t, &contextdv1.HookSubscription{PreCompact: true})
			asked := verdict(t, hooks, aCompaction())
			called(t, stream)
			test.leave(t, a, stream, cancel)
			if v := <-asked; v.Decision != lifecycle.Allow || hooks.Overdue() != 0 {
				t.Errorf("the verdict is %+v", v)
			}
			_, err := stream.Recv()
			switch test.end.code {
			case codes.OK:
				if !errors.Is(err, io.EOF) {
					t.Errorf("the stream ended with %v", err)
				}
			case codes.Canceled: // by the client's own library, without details
			default:
				checkRefusal(t, err, test.end)
			}
			if v := <-verdict(t, hooks, aCompaction()); v.Decision != lifecycle.Allow {
				t.Errorf("the next verdict is %+v", v)
			}
		})
	}
}

// TestHookRefusals: what ends the stream, and with what.
func TestHookRefusals(t *testing.T) {
	subscribing := func(s *contextdv1.HookSubscription) *contextdv1.ServeHooksRequest {
		return &contextdv1.ServeHooksRequest{Part: &contextdv1.ServeHooksRequest_Subscribe{Subscribe: s}}
	}
	replying := func(r *contextdv1.HookReply) *contextdv1.ServeHooksRequest {
		return &contextdv1.ServeHooksRequest{Part: &contextdv1.ServeHooksRequest_Reply{Reply: r}}
	}
	fine := subscribing(&contextdv1.HookSubscription{PreCompact: true})
	const known = "1.1.pre_compact" // nobody was called yet, so it is not
	for name, test := range map[string]struct {
		send  []*contextdv1.ServeHooksRequest
		field string
	}{
		"nothing":            {nil, "subscribe"},
		"an empty message":   {[]*contextdv1.ServeHooksRequest{{}}, "part"},
		"a reply first":      {[]*contextdv1.ServeHooksRequest{replying(&contextdv1.HookReply{CallId: known})}, "subscribe"},
		"neither hook":       {[]*contextdv1.ServeHooksRequest{subscribing(&contextdv1.HookSubscription{})}, "subscribe.pre_compact"},
		"a session of none":  {[]*contextdv1.ServeHooksRequest{subscribing(&contextdv1.HookSubscription{PreCompact: true, SessionIds: []string{"fine", "not fine"}})}, "subscribe.session_ids[1]"},
		"no time":            {[]*contextdv1.ServeHooksRequest{subscribing(&contextdv1.HookSubscription{PreCompact: true, Deadline: durationpb.New(0)})}, "subscribe.deadline"},
		"too much time":      {[]*contextdv1.ServeHooksRequest{subscribing(&contextdv1.HookSubscription{PreCompact: true, Deadline: durationpb.New(61 * time.Second)})}, "subscribe.deadline"},
		"subscribed twice":   {[]*contextdv1.ServeHooksRequest{fine, fine}, "subscribe"},
		"a call made up":     {[]*contextdv1.ServeHooksRequest{fine, replying(&contextdv1.HookReply{CallId: known})}, "reply.call_id"},
		"no call":            {[]*contextdv1.ServeHooksRequest{fine, replying(&contextdv1.HookReply{})}, "reply.call_id"},
		"a soup of a reply":  {[]*contextdv1.ServeHooksRequest{fine, replying(&contextdv1.HookReply{CallId: known, Decision: "soup"})}, "reply.decision"},
		"a soup of strategy": {[]*contextdv1.ServeHooksRequest{fine, replying(&contextdv1.HookReply{CallId: known, Decision: "modify", Strategy: "soup"})}, "reply.strategy"},
		"terms of an allow":  {[]*contextdv1.ServeHooksRequest{fine, replying(&contextdv1.HookReply{CallId: known, KeepLastTurns: proto.Uint32(1)})}, "reply.keep_last_turns"},
		"a target of none":   {[]*contextdv1.ServeHooksRequest{fine, replying(&contextdv1.HookReply{CallId: known, Decision: "modify", TargetTokens: proto.Uint64(0)})}, "reply.target_tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := serveHooks(t)
			stream, err := a.compaction.ServeHooks(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range test.send {
				if err := stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
			}
			if len(test.send) == 0 {
				if err := stream.CloseSend(); err != nil {
					t.Fatal(err)
				}
			}
			_, err = stream.Recv()
			checkRefusal(t, err, badInput{code: codes.InvalidArgument, reason: invalid, field: test.field})
		})
	}
}

// TestRepliesThatAreRefused to calls that were made.
func TestRepliesThatAreRefused(t *testing.T) {
	for name, send := range map[string]func(t *testing.T, stream hookStream, hooks *lifecycle.Hooks){
		"to post_compact": func(t *testing.T, stream hookStream, hooks *lifecycle.Hooks) {
			hooks.PostCompact(aCompaction())
			reply(t, stream, &contextdv1.HookReply{CallId: called(t, stream).GetCallId()})
		},
		"twice": func(t *testing.T, stream hookStream, hooks *lifecycle.Hooks) {
			asked := verdict(t, hooks, aCompaction())
			call := called(t, stream).GetCallId()
			reply(t, stream, &contextdv1.HookReply{CallId: call})
			reply(t, stream, &contextdv1.HookReply{CallId: call, Decision: "block"})
			if v := <-asked; v.Decision != lifecycle.Allow {
				t.Errorf("the second reply counted: %+v", v)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, hooks := serveHooks(t)
			stream := a.subscribe(t.Context(), t, &contextdv1.HookSubscription{PreCompact: true, PostCompact: true})
			send(t, stream, hooks)
			_, err := stream.Recv()
			checkRefusal(t, err, badInput{code: codes.InvalidArgument, reason: invalid, field: "reply.call_id"})
		})
	}
}
