package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/health"
	"github.com/contextd/contextd/internal/summarize/modeltest"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// agent is a runtime whose session "s" contextd keeps.
type agent struct {
	*running
	t *testing.T
	contextdv1.ContextServiceClient
	compaction contextdv1.CompactionServiceClient
	// turns is how many the session has.
	turns int
	// window is that of its contexts, in tokens.
	window uint64
}

// startAgent runs a daemon with a memory store and a summarizer named "house".
func startAgent(t *testing.T, house config.Summarizer) *agent {
	t.Helper()
	a := agentOf(t, house, func(c *config.Config) { c.Store = config.StoreMemory })
	a.push(said(contextdv1.Role_ROLE_SYSTEM, text("You are a careful engineer.")), said(contextdv1.Role_ROLE_USER, text("Find the module that leaks.")))
	return a
}

// agentOf is a runtime of a daemon with a summarizer named "house".
func agentOf(t *testing.T, house config.Summarizer, change func(c *config.Config)) *agent {
	t.Helper()
	r := start(t, settings(t, func(c *config.Config) {
		c.Summarizers, c.DefaultSummarizer = map[string]config.Summarizer{"house": house}, "house"
		change(c)
	}))
	r.await(t, serving)
	t.Cleanup(func() { r.end(t) })
	return &agent{r, t, r.api(), contextdv1.NewCompactionServiceClient(r.conn), 0, 12_000}
}

func said(role contextdv1.Role, blocks ...*contextdv1.Block) *contextdv1.Event {
	return &contextdv1.Event{Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{Role: role, Blocks: blocks}}}
}

func text(s string) *contextdv1.Block {
	return &contextdv1.Block{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: s}}}
}

func (a *agent) push(events ...*contextdv1.Event) {
	a.t.Helper()
	if _, err := a.AppendEvents(a.t.Context(), &contextdv1.AppendEventsRequest{SessionId: "s", Events: events}); err != nil {
		a.t.Fatal(err)
	}
}

// work lets the session grow by so many turns.
func (a *agent) work(turns int) {
	a.t.Helper()
	for range turns {
		a.turns++
		id := fmt.Sprintf("call-%d", a.turns)
		body := strings.Repeat(fmt.Sprintf("pkg/mod%d/handler.go: ok\n", a.turns), 40)
		a.push(
			said(contextdv1.Role_ROLE_ASSISTANT, text("I look at the next module."), &contextdv1.Block{Kind: &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{
				CallId: id, Name: "read_file", ArgumentsJson: fmt.Appendf(nil, `{"path":"pkg/mod%d/handler.go"}`, a.turns),
			}}}),
			said(contextdv1.Role_ROLE_TOOL, &contextdv1.Block{Kind: &contextdv1.Block_ToolResult{ToolResult: &contextdv1.ToolResult{
				CallId: id, Content: []*contextdv1.Block{text(body)},
			}}}),
		)
	}
}

// assembled is a context as it came over the wire.
type assembled struct {
	*contextdv1.ContextHeader
	json string
}

func (a *agent) assemble() assembled {
	a.t.Helper()
	stream, err := a.AssembleContext(a.t.Context(), &contextdv1.AssembleContextRequest{SessionId: "s", Budget: &contextdv1.Budget{MaxTokens: a.window}})
	if err != nil {
		a.t.Fatal(err)
	}
	var out assembled
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			a.t.Fatal(err)
		}
		if h := resp.GetHeader(); h != nil {
			out.ContextHeader = h
		}
		for _, m := range resp.GetChunk().GetMessages() {
			out.json += string(m.GetJson()) + "\n"
		}
	}
}

// idle checks that no summary is being made ahead of need, which would be reported with
// what the test asks for.
func (a *agent) idle(c assembled) {
	a.t.Helper()
	if c.GetSummarizingThroughSeq() != 0 {
		a.t.Fatalf("a summary through %d is being made", c.GetSummarizingThroughSeq())
	}
}

func (a *agent) compact(strategy string) (*contextdv1.CompactSessionResponse, error) {
	return a.compaction.CompactSession(a.t.Context(), &contextdv1.CompactSessionRequest{SessionId: "s", Strategy: strategy, TargetTokens: 1000})
}

func (a *agent) summaries() *contextdv1.ListSummariesResponse {
	a.t.Helper()
	got, err := a.compaction.ListSummaries(a.t.Context(), &contextdv1.ListSummariesRequest{SessionId: "s"})
	if err != nil {
		a.t.Fatal(err)
	}
	return got
}

// watch returns what waits for the next event of a type. Others are kept for when they
// are asked for.
func (a *agent) watch() func(what string) *contextdv1.LifecycleEvent {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), time.Minute)
	a.t.Cleanup(cancel)
	stream, err := a.compaction.WatchLifecycle(ctx, &contextdv1.WatchLifecycleRequest{SessionIds: []string{"s"}})
	if err == nil {
		_, err = stream.Header()
	}
	if err != nil {
		a.t.Fatal(err)
	}
	var kept []*contextdv1.LifecycleEvent
	return func(what string) *contextdv1.LifecycleEvent {
		a.t.Helper()
		for {
			if i := slices.IndexFunc(kept, func(e *contextdv1.LifecycleEvent) bool { return e.GetType() == what }); i >= 0 {
				e := kept[i]
				kept = slices.Delete(kept, i, i+1)
				return e
			}
			resp, err := stream.Recv()
			if err != nil {
				a.t.Fatalf("no %s came: %v; remaining are %v", what, err, kept)
			}
			kept = append(kept, resp.GetEvent())
		}
	}
}

// openAI is a summarizer with a fake server.
func openAI(t *testing.T, b modeltest.Behaviour) (*modeltest.Server, config.Summarizer) {
	t.Helper()
	server := modeltest.New(b)
	t.Cleanup(server.Close)
	return server, config.Summarizer{
		Type: config.SummarizerOpenAI, BaseURL: server.OpenAIURL(), Model: "small", MaxAttempts: 1, Timeout: 10 * time.Second, CoolDown: time.Hour,
	}
}

func TestAModelCompactsASession(t *testing.T) {
	server, house := openAI(t, modeltest.OK)
	a := startAgent(t, house)
	a.work(8)
	before := a.assemble()
	a.idle(before)
	next := a.watch()
	got, err := a.compact("summarize")
	if err != nil {
		t.Fatal(err)
	}
	all := a.summaries()
	if got.GetOutcome() != "compacted" || got.GetStrategy() != "summarize" || got.GetTokensAfter() >= got.GetTokensBefore() || got.GetArchivedMessages() == 0 ||
		len(all.GetSummaries()) != 1 || got.GetSummary().GetSummaryId() != all.GetSummaries()[0].GetSummaryId() || got.GetSummary().GetSummarizer() != "small" {
		t.Errorf("%v; the summaries are %v", got, all)
	}
	for _, s := range all.GetSummarizers() {
		if s.GetBreaker() != "closed" || s.GetConsecutiveFailures() != 0 {
			t.Errorf("nothing failed, and a summarizer is %v", s)
		}
	}
	for _, what := range []string{"compaction_started", "summary_started", "summary_ready", "compacted"} {
		if e := next(what); e.GetSessionId() != "s" {
			t.Errorf("%s is of %q", what, e.GetSessionId())
		}
	}
	after := a.assemble()
	if after.GetBudget().GetProjectedTokens() != got.GetTokensAfter() || after.GetPrefixHash() == before.GetPrefixHash() || len(server.Requests()) == 0 {
		t.Errorf("the next context holds %d tokens; reported were %d", after.GetBudget().GetProjectedTokens(), got.GetTokensAfter())
	}
	body, err := a.ResolvePointer(t.Context(), &contextdv1.ResolvePointerRequest{SessionId: "s", Pointer: "ctx:4.0"})
	if err != nil || !strings.Contains(body.String(), "pkg/mod1/handler.go: ok") {
		t.Errorf("what was dropped is not in the log any more: %v, %v", body, err)
	}
}

// A model that fails is not asked after three failures, and contexts and compactions do
// without it.
func TestAFailingModelIsLeftAlone(t *testing.T) {
	server, house := openAI(t, modeltest.Failing)
	a := startAgent(t, house)
	a.work(8)
	before := a.assemble()
	a.idle(before)
	next := a.watch()
	for range 3 {
		if got, err := a.compact("summarize"); err == nil {
			t.Errorf("the model fails, and the answer is %v", got)
		}
		if e := next("summary_failed"); e.GetAttributes()["summarizer"] != "house" || e.GetAttributes()["reason"] == "" {
			t.Errorf("got %v", e)
		}
	}
	if e := next("breaker_open"); e.GetAttributes()["summarizer"] != "house" {
		t.Errorf("got %v", e)
	}
	a.awaitPart(t, health.Summarizer("house"), notServing)
	a.awaitPart(t, health.Summarizer("extractive"), serving)
	a.await(t, serving)
	requests := len(server.Requests())
	states := map[string]string{}
	for _, s := range a.summaries().GetSummarizers() {
		states[s.GetName()] = fmt.Sprint(s.GetBreaker(), s.GetConsecutiveFailures())
	}
	if states["house"] != "open3" || states["extractive"] != "closed0" {
		t.Errorf("the summarizers are %v", states)
	}
	if after := a.assemble(); after.GetPrefixHash() != before.GetPrefixHash() {
		t.Error("compactions that failed changed the context")
	}
	// A target that a summary would leave within reach: one is wanted, and nobody makes it.
	got, err := a.compaction.CompactSession(t.Context(), &contextdv1.CompactSessionRequest{SessionId: "s", TargetTokens: 1200})
	if err != nil || got.GetOutcome() != "compacted" || got.GetStrategy() != "window" || got.GetDetail() == "" || got.GetSummary() != nil {
		t.Errorf("%v, %v", got, err)
	}
	a.work(40)
	if c := a.assemble(); c.GetBudget().GetProjectedTokens() > c.GetBudget().GetTargetTokens() {
		t.Errorf("%v", c.GetBudget())
	}
	if n := len(server.Requests()); n != requests {
		t.Errorf("the model was asked %d times more while its breaker is open", n-requests)
	}
}

func TestAHookVetoesOverTheWire(t *testing.T) {
	a := startAgent(t, config.Summarizer{Type: config.SummarizerExtractive})
	a.work(8)
	a.idle(a.assemble())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	hooks, err := a.compaction.ServeHooks(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := hooks.Send(&contextdv1.ServeHooksRequest{Part: &contextdv1.ServeHooksRequest_Subscribe{Subscribe: &contextdv1.HookSubscription{PreCompact: true}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := hooks.Header(); err != nil {
		t.Fatal(err)
	}
	next := a.watch()
	answered := make(chan error, 1)
	go func() {
		resp, err := hooks.Recv()
		if err == nil {
			err = hooks.Send(&contextdv1.ServeHooksRequest{Part: &contextdv1.ServeHooksRequest_Reply{Reply: &contextdv1.HookReply{
				CallId: resp.GetCall().GetCallId(), Decision: "block", Reason: "not now",
			}}})
		}
		answered <- err
	}()
	got, err := a.compact("")
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if err != nil || got.GetOutcome() != "vetoed" || got.GetDetail() != "not now" || got.GetCompactionSeq() != 0 || got.GetTokensAfter() != got.GetTokensBefore() {
		t.Errorf("%v, %v", got, err)
	}
	if e := next("compaction_vetoed"); e.GetAttributes()["reason"] != "not now" {
		t.Errorf("got %v", e)
	}
	if err := hooks.CloseSend(); err != nil {
		t.Error(err)
	}
}

// A runtime that brings its own model takes a task, writes, and finds its text in the
// answer of the compaction that waited for it.
func TestARuntimeBringsItsModel(t *testing.T) {
	a := startAgent(t, config.Summarizer{Type: config.SummarizerPull, Lease: time.Minute})
	a.work(8)
	a.idle(a.assemble())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tasks, err := a.compaction.LeaseSummaryTasks(ctx, &contextdv1.LeaseSummaryTasksRequest{WorkerId: "runtime"})
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		*contextdv1.CompactSessionResponse
		err error
	}
	compacted := make(chan answer, 1)
	go func() {
		got, err := a.compact("summarize")
		compacted <- answer{got, err}
	}()
	resp, err := tasks.Recv()
	if err != nil {
		t.Fatal(err)
	}
	task := resp.GetTask()
	if task.GetSessionId() != "s" || !strings.Contains(task.GetPrompt(), "pkg/mod1/handler.go") || task.GetMaxOutputTokens() == 0 {
		t.Errorf("the task is %v", task)
	}
	const wrote = "Modules 1 to 6 are in order."
	stored, err := a.compaction.CompleteSummaryTask(t.Context(), &contextdv1.CompleteSummaryTaskRequest{TaskId: task.GetTaskId(), Text: wrote, Model: "own"})
	if err != nil || stored.GetSummary().GetText() != wrote {
		t.Fatalf("%v, %v", stored, err)
	}
	got := <-compacted
	if got.err != nil || got.GetSummary().GetText() != wrote || got.GetSummary().GetSummarizer() != "own" {
		t.Errorf("%v, %v", got, got.err)
	}
	if c := a.assemble(); !strings.Contains(c.json, "> "+wrote) {
		t.Errorf("the next context does not quote it:\n%s", c.json)
	}
	if _, err := a.compaction.CompleteSummaryTask(t.Context(), &contextdv1.CompleteSummaryTaskRequest{TaskId: task.GetTaskId(), Text: wrote}); status.Code(err) != codes.NotFound {
		t.Errorf("completed twice: %v", err)
	}
}

// A prompt that the provider refused as too long makes the next context smaller, once.
func TestARejectedPromptIsFollowedByASmallerOne(t *testing.T) {
	for _, window := range []uint64{8_000, 12_000, 200_000} {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			a := startAgent(t, config.Summarizer{Type: config.SummarizerExtractive})
			a.window = window
			a.work(8)
			before := a.assemble()
			a.idle(before)
			learnt, err := a.RecordModelCall(t.Context(), &contextdv1.RecordModelCallRequest{SessionId: "s", ProjectionId: before.GetProjectionId(), Model: "m", RejectedOverBudget: true})
			if err != nil || learnt.GetCalibration() <= 1 {
				t.Errorf("%v, %v", learnt, err)
			}
			after := a.assemble()
			if after.GetBudget().GetProjectedTokens()*10 > before.GetBudget().GetProjectedTokens()*8 {
				t.Errorf("%d tokens were refused; the next context holds %d", before.GetBudget().GetProjectedTokens(), after.GetBudget().GetProjectedTokens())
			}
			if again := a.assemble(); again.GetPrefixHash() != after.GetPrefixHash() {
				t.Error("the same rejection made another context smaller")
			}
		})
	}
}

// A reminder expires after its turns, and watchers are notified.
func TestTheEndOfAReminderIsTold(t *testing.T) {
	a := startAgent(t, config.Summarizer{Type: config.SummarizerExtractive})
	two := uint32(2)
	a.push(&contextdv1.Event{Kind: &contextdv1.Event_Reminder{Reminder: &contextdv1.Reminder{Body: "Hurry.", TtlTurns: &two, DedupeKey: "hurry"}}})
	a.work(1)
	if c := a.assemble(); !strings.Contains(c.json, "Hurry.") {
		t.Errorf("the reminder is not shown:\n%s", c.json)
	}
	next := a.watch()
	a.work(1)
	if c := a.assemble(); strings.Contains(c.json, "Hurry.") {
		t.Errorf("the reminder is shown still:\n%s", c.json)
	}
	if e := next("reminder_expired"); e.GetAttributes()["reminder"] != "hurry" {
		t.Errorf("got %v", e)
	}
}
