package server_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/server"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/pull"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// serveTasks serves an API over a real queue.
func serveTasks(t *testing.T) (*api, *pull.Queue) {
	t.Helper()
	queue := pull.New(time.Hour)
	return serve(t, stores["memory"](t), func(o *server.Options) { o.Tasks = queue }), queue
}

func request(session string) summarize.Request {
	return summarize.Request{
		TaskID: "task-" + session, SessionID: session, From: 3, To: 9,
		System: "You summarise.", Prompt: "| the span", MaxOutputTokens: 500,
	}
}

// outcome is what a backend gave for a request.
type outcome struct {
	output summarize.Output
	err    error
}

// summarizing does what the scheduler does: it asks the queue and says what became
// of the text.
func summarizing(t *testing.T, queue *pull.Queue, r summarize.Request, settle func(summarize.Output) (summarize.Summary, error)) <-chan outcome {
	t.Helper()
	out := make(chan outcome, 1)
	go func() {
		output, err := queue.Summarize(t.Context(), r)
		if err == nil {
			s, refused := settle(output)
			queue.Settled(r, s, refused)
		}
		out <- outcome{output, err}
	}()
	return out
}

func (a *api) lease(ctx context.Context, t *testing.T, req *contextdv1.LeaseSummaryTasksRequest) contextdv1.CompactionService_LeaseSummaryTasksClient {
	t.Helper()
	stream, err := a.compaction.LeaseSummaryTasks(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func leased(t *testing.T, stream contextdv1.CompactionService_LeaseSummaryTasksClient) *contextdv1.SummaryTask {
	t.Helper()
	resp, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetTask()
}

func TestLeaseAndComplete(t *testing.T) {
	a, queue := serveTasks(t)
	stream := a.lease(t.Context(), t, &contextdv1.LeaseSummaryTasksRequest{WorkerId: "w", SessionIds: []string{"s"}})
	stored := summarize.Summary{
		ID: "s9-0a1b", From: 3, To: 9, Text: "It went well.", Ledger: "ls", Index: "/etc/hosts", Summarizer: "runtime",
		Model: "m-1", Instructions: "sha256:00", InputTokens: 90, OutputTokens: 4, Time: epoch, Version: 1,
	}
	before := time.Now()
	other := summarizing(t, queue, request("other"), nil)
	asked := summarizing(t, queue, request("s"), func(summarize.Output) (summarize.Summary, error) { return stored, nil })
	task := leased(t, stream)
	if expires := task.GetLeaseExpireTime().AsTime(); expires.Before(before.Add(time.Hour)) || expires.After(time.Now().Add(time.Hour)) {
		t.Errorf("the lease ends at %s; want an hour from now", expires)
	}
	want := &contextdv1.SummaryTask{
		TaskId: task.GetTaskId(), SessionId: "s", FromSeq: 3, ToSeq: 9, SystemPrompt: "You summarise.", Prompt: "| the span",
		MaxOutputTokens: 500, LeaseExpireTime: task.GetLeaseExpireTime(),
	}
	if !proto.Equal(task, want) || task.GetTaskId() == "" {
		t.Errorf("the worker got\n%v; want\n%v", task, want)
	}
	got, err := a.compaction.CompleteSummaryTask(t.Context(), &contextdv1.CompleteSummaryTaskRequest{
		TaskId: task.GetTaskId(), Text: "It went well.", InputTokens: 90, OutputTokens: 4, Model: "m-1",
	})
	if err != nil {
		t.Fatal(err)
	}
	wantSummary := &contextdv1.Summary{
		SummaryId: "s9-0a1b", FromSeq: 3, ToSeq: 9, Text: "It went well.", ToolLedger: "ls", IdentifierIndex: "/etc/hosts", Summarizer: "m-1",
		InstructionsFingerprint: "sha256:00", InputTokens: 90, OutputTokens: 4, CreateTime: timestamppb.New(epoch), Version: 1,
	}
	if !proto.Equal(got.GetSummary(), wantSummary) {
		t.Errorf("the worker is told\n%v; want\n%v", got.GetSummary(), wantSummary)
	}
	if o := <-asked; o.err != nil || o.output != (summarize.Output{Text: "It went well.", InputTokens: 90, OutputTokens: 4, Model: "m-1"}) {
		t.Errorf("the daemon got %+v", o)
	}
	_, err = a.compaction.CompleteSummaryTask(t.Context(), &contextdv1.CompleteSummaryTaskRequest{TaskId: task.GetTaskId(), Text: "again"})
	checkRefusal(t, err, badInput{code: codes.NotFound, reason: apierr.ReasonNotFound})
	// The other session's is there still, for who wants it; it ends with an error.
	task = leased(t, a.lease(t.Context(), t, &contextdv1.LeaseSummaryTasksRequest{WorkerId: "x"}))
	got, err = a.compaction.CompleteSummaryTask(t.Context(), &contextdv1.CompleteSummaryTaskRequest{TaskId: task.GetTaskId(), Error: "no GPU"})
	if err != nil || task.GetSessionId() != "other" || got.Summary != nil {
		t.Errorf("task %v ended with %v, %v", task, got, err)
	}
	var said *pull.WorkerError
	if o := <-other; !errors.As(o.err, &said) || said.Reason != "no GPU" {
		t.Errorf("the daemon got %+v", o)
	}
}

// TestLeasesEnd, and the task goes to the next one who asks.
func TestLeasesEnd(t *testing.T) {
	a, queue := serveTasks(t)
	asked := summarizing(t, queue, request("s"), func(o summarize.Output) (summarize.Summary, error) {
		return summarize.Summary{ID: "s9-ff", Text: o.Text, Summarizer: "runtime"}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	first := leased(t, a.lease(ctx, t, &contextdv1.LeaseSummaryTasksRequest{WorkerId: "w", Lease: durationpb.New(time.Millisecond)}))
	cancel()
	second := leased(t, a.lease(t.Context(), t, &contextdv1.LeaseSummaryTasksRequest{WorkerId: "x"}))
	if first.GetTaskId() != second.GetTaskId() || !second.GetLeaseExpireTime().AsTime().After(first.GetLeaseExpireTime().AsTime()) {
		t.Errorf("first %v, then %v", first, second)
	}
	// The first one's text counts: nobody was faster.
	got, err := a.compaction.CompleteSummaryTask(t.Context(), &contextdv1.CompleteSummaryTaskRequest{TaskId: first.GetTaskId(), Text: "after all"})
	if err != nil || got.GetSummary().GetText() != "after all" || got.GetSummary().GetSummarizer() != "runtime" {
		t.Errorf("got %v, %v", got, err)
	}
	<-asked
}

func TestARejectedTextIsTheWorkersFault(t *testing.T) {
	a, queue := serveTasks(t)
	asked := summarizing(t, queue, request("s"), func(summarize.Output) (summarize.Summary, error) {
		return summarize.Summary{}, &summarize.RejectedError{Reason: "it echoes its input"}
	})
	task := leased(t, a.lease(t.Context(), t, &contextdv1.LeaseSummaryTasksRequest{WorkerId: "w"}))
	_, err := a.compaction.CompleteSummaryTask(t.Context(), &contextdv1.CompleteSummaryTaskRequest{TaskId: task.GetTaskId(), Text: "| the span"})
	checkRefusal(t, err, badInput{code: codes.InvalidArgument, reason: invalid, field: "text"})
	<-asked
}

func TestLeaseRefusals(t *testing.T) {
	a, _ := serveTasks(t)
	none := serve(t, stores["memory"](t))
	leasing := func(a *api, req *contextdv1.LeaseSummaryTasksRequest) error {
		stream, err := a.compaction.LeaseSummaryTasks(t.Context(), req)
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	completing := func(a *api, req *contextdv1.CompleteSummaryTaskRequest) error {
		_, err := a.compaction.CompleteSummaryTask(t.Context(), req)
		return err
	}
	waiting := a.lease(t.Context(), t, &contextdv1.LeaseSummaryTasksRequest{WorkerId: "w"})
	for name, test := range map[string]struct {
		err  error
		want badInput
	}{
		"no queue to lease from":  {leasing(none, &contextdv1.LeaseSummaryTasksRequest{WorkerId: "w"}), badInput{code: codes.FailedPrecondition, reason: apierr.ReasonNotConfigured}},
		"no queue to complete in": {completing(none, &contextdv1.CompleteSummaryTaskRequest{TaskId: "t", Text: "x"}), badInput{code: codes.FailedPrecondition, reason: apierr.ReasonNotConfigured}},
		"no name":                 {leasing(a, &contextdv1.LeaseSummaryTasksRequest{}), badInput{code: codes.InvalidArgument, reason: invalid, field: "worker_id"}},
		"a lease of nothing":      {leasing(a, &contextdv1.LeaseSummaryTasksRequest{WorkerId: "w", Lease: durationpb.New(0)}), badInput{code: codes.InvalidArgument, reason: invalid, field: "lease"}},
		"a lease of a day":        {leasing(a, &contextdv1.LeaseSummaryTasksRequest{WorkerId: "w", Lease: durationpb.New(24 * time.Hour)}), badInput{code: codes.InvalidArgument, reason: invalid, field: "lease"}},
		"a session that is none":  {leasing(a, &contextdv1.LeaseSummaryTasksRequest{WorkerId: "w", SessionIds: []string{""}}), badInput{code: codes.InvalidArgument, reason: invalid, field: "session_ids[0]"}},
		"an unknown task":         {completing(a, &contextdv1.CompleteSummaryTaskRequest{TaskId: "t", Text: "x"}), badInput{code: codes.NotFound, reason: apierr.ReasonNotFound}},
		"no task":                 {completing(a, &contextdv1.CompleteSummaryTaskRequest{Text: "x"}), badInput{code: codes.InvalidArgument, reason: invalid, field: "task_id"}},
		"neither text nor error":  {completing(a, &contextdv1.CompleteSummaryTaskRequest{TaskId: "t"}), badInput{code: codes.InvalidArgument, reason: invalid, field: "text"}},
		"text and error":          {completing(a, &contextdv1.CompleteSummaryTaskRequest{TaskId: "t", Text: "x", Error: "y"}), badInput{code: codes.InvalidArgument, reason: invalid, field: "text"}},
	} {
		t.Run(name, func(t *testing.T) { checkRefusal(t, test.err, test.want) })
	}
	a.server.Drain()
	_, err := waiting.Recv()
	draining := badInput{code: codes.Unavailable, reason: apierr.ReasonDraining}
	checkRefusal(t, err, draining)
	checkRefusal(t, leasing(a, &contextdv1.LeaseSummaryTasksRequest{WorkerId: "w"}), draining)
}
