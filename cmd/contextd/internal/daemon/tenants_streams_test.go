package daemon_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestStreamsAreApart: who watches sessions, serves hooks or takes summaries on a lease, by
// name or all of them, gets what its own tenant does, after another did the same first.
func TestStreamsAreApart(t *testing.T) {
	for name, sessions := range map[string][]string{"all": nil, "by name": {"mine"}} {
		t.Run(name, func(t *testing.T) { streamsAreApart(t, sessions) })
	}
}

func streamsAreApart(t *testing.T, sessions []string) {
	of := startTenants(t, 1, func(c *config.Config) {
		c.Summarizers, c.DefaultSummarizer = map[string]config.Summarizer{"house": {Type: config.SummarizerPull}}, "house"
	})
	t.Cleanup(func() { of.end(t) })
	compaction := contextdv1.NewCompactionServiceClient(of.conn)
	own, cancel := context.WithTimeout(of.as(t.Context(), "t1"), time.Minute) // what does not come, does not
	defer cancel()

	watch, err := compaction.WatchLifecycle(own, &contextdv1.WatchLifecycleRequest{SessionIds: sessions})
	check(t, err)
	_, err = watch.Header()
	check(t, err)
	hooks, err := compaction.ServeHooks(own)
	check(t, err)
	check(t, hooks.Send(&contextdv1.ServeHooksRequest{Part: &contextdv1.ServeHooksRequest_Subscribe{
		Subscribe: &contextdv1.HookSubscription{SessionIds: sessions, PreCompact: true},
	}}))
	_, err = hooks.Header()
	check(t, err)
	tasks, err := compaction.LeaseSummaryTasks(own, &contextdv1.LeaseSummaryTasksRequest{WorkerId: "w", SessionIds: sessions})
	check(t, err)

	// The first tenant is compacted without asking anybody else, up to its task.
	names, compacted := of.settle(t)
	if state, err := compaction.CompleteSummaryTask(own, &contextdv1.CompleteSummaryTaskRequest{TaskId: names["task"], Text: "theirs"}); status.Code(err) != codes.NotFound {
		t.Errorf("another's task: %v, %v", state, err)
	}
	// The next thing that each stream gets is the own tenant's.
	for range 2 {
		_, err := of.api().AppendEvents(own, &contextdv1.AppendEventsRequest{SessionId: "mine", Events: []*contextdv1.Event{
			said(contextdv1.Role_ROLE_USER, text(strings.Repeat("own ", 300))), said(contextdv1.Role_ROLE_ASSISTANT, text(strings.Repeat("own ", 300))),
		}})
		check(t, err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := compaction.CompactSession(own, &contextdv1.CompactSessionRequest{SessionId: "mine", Strategy: "summarize", KeepLastTurns: 1})
		ended <- err
	}()
	call, err := hooks.Recv()
	check(t, err)
	if n := call.GetCall().GetMessageCount(); n != 4 {
		t.Errorf("the first call is about %d messages: %v", n, call)
	}
	check(t, hooks.Send(&contextdv1.ServeHooksRequest{Part: &contextdv1.ServeHooksRequest_Reply{
		Reply: &contextdv1.HookReply{CallId: call.GetCall().GetCallId(), Decision: "allow"},
	}}))
	task, err := tasks.Recv()
	check(t, err)
	if prompt := task.GetTask().GetPrompt(); strings.Contains(prompt, secret) || !strings.Contains(prompt, "own") {
		t.Errorf("the first task is %v", task)
	}
	first, err := watch.Recv()
	check(t, err)
	if got := first.GetEvent(); got.GetType() != "compaction_started" || got.GetAttributes()["tokens_before"] == "" {
		t.Errorf("the first event is %v", got)
	}
	_, err = compaction.CompleteSummaryTask(own, &contextdv1.CompleteSummaryTaskRequest{TaskId: task.GetTask().GetTaskId(), Text: "a short summary of what was said"})
	check(t, err)
	check(t, <-ended)

	// Another tenant's call cannot be answered, and its owner's task is still there.
	check(t, hooks.Send(&contextdv1.ServeHooksRequest{Part: &contextdv1.ServeHooksRequest_Reply{
		Reply: &contextdv1.HookReply{CallId: names["call"], Decision: "allow"},
	}}))
	if got, err := hooks.Recv(); status.Code(err) != codes.NotFound && status.Code(err) != codes.InvalidArgument {
		t.Errorf("an answer to another's call: %v, %v", got, err)
	}
	_, err = compaction.CompleteSummaryTask(of.as(t.Context(), "first"), &contextdv1.CompleteSummaryTaskRequest{TaskId: names["task"], Text: "a short summary of what was said"})
	check(t, err)
	check(t, <-compacted)
}

// TestCallersProveWhoTheyAre: without a token that is known nothing is answered, the health
// and the reflection of the services included.
func TestCallersProveWhoTheyAre(t *testing.T) {
	of := startTenants(t, 1, nil)
	t.Cleanup(func() { of.end(t) })
	of.tokens["stranger"], of.tokens["empty"] = "stranger", ""
	for who, want := range map[string]codes.Code{"stranger": codes.Unauthenticated, "empty": codes.Unauthenticated, "": codes.OK, "t1": codes.OK} {
		for _, method := range []string{"/contextd.v1.ContextService/ListSessions", "/grpc.health.v1.Health/Check"} {
			err := of.conn.Invoke(of.as(t.Context(), who), method, &contextdv1.ListSessionsRequest{}, &contextdv1.ListSessionsResponse{})
			if status.Code(err) != want {
				t.Errorf("%q calls %s: %v, want %v", who, method, err, want)
			}
		}
	}
	if err := of.conn.Invoke(t.Context(), "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", &contextdv1.ListSessionsRequest{}, &contextdv1.ListSessionsResponse{}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("reflection for a stranger: %v", err)
	}
}

// TestTenantsAreSmall: a daemon may have many tenants. What each costs is logged.
func TestTenantsAreSmall(t *testing.T) {
	const many, most = 500, 16 << 10
	of := startTenants(t, many+1, nil)
	t.Cleanup(func() { of.end(t) })
	call := func() {
		if _, err := of.api().ListSessions(of.as(t.Context(), of.fresh()), &contextdv1.ListSessionsRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	// The daemon's tokenizer is no tenant's.
	_, err := of.api().CountTokens(of.as(t.Context(), "first"), &contextdv1.CountTokensRequest{Text: "x"})
	check(t, err)
	call()
	before := int64(heap())
	for range many {
		call()
	}
	each := (int64(heap()) - before) / many
	t.Logf("%d bytes for each tenant", each)
	if each > most {
		t.Errorf("more than %d", most)
	}
}

// TestLimitsOfAllTenants hold for a tenant that has nothing yet.
func TestLimitsOfAllTenants(t *testing.T) {
	metrics := free(t)
	of := startTenants(t, 2, func(c *config.Config) {
		c.MetricsListen, c.Limits.MaxStoreSessions, c.Limits.MaxStoreBytes = metrics, 2, 100
	})
	t.Cleanup(func() { of.end(t) })
	_, err := of.api().AppendEvents(of.as(t.Context(), "t1"), say("s", "hello"))
	check(t, err)
	_, err = of.api().AppendEvents(of.as(t.Context(), "t2"), say("s", strings.Repeat("x", 100)))
	refusedBy(t, err, "max_store_bytes")
	_, err = of.api().CreateSession(of.as(t.Context(), "t2"), &contextdv1.CreateSessionRequest{SessionId: "s"})
	check(t, err)
	_, err = of.api().CreateSession(of.as(t.Context(), "t2"), &contextdv1.CreateSessionRequest{SessionId: "other"})
	refusedBy(t, err, "max_store_sessions")
	body := scrape(t, "http://"+metrics+"/metrics")
	for _, want := range []string{
		`setting="max_store_sessions"} 2`, `setting="max_calls"} 0`, `setting="max_assemblies"} 0`,
		`otel_scope_tenant="t1",otel_scope_version="test"} 1`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the metrics lack %s:\n%s", want, grep(body, "contextd_limit")+grep(body, "contextd_sessions"))
		}
	}
}

func refusedBy(t *testing.T, err error, setting string) {
	t.Helper()
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), setting) {
		t.Errorf("%v, want a refusal by %s", err, setting)
	}
}

// TestAdminIsNotForTenants: a service that is not the API itself is about the whole store.
func TestAdminIsNotForTenants(t *testing.T) {
	of := startTenants(t, 1, nil)
	t.Cleanup(func() { of.end(t) })
	tried := 0
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		if !strings.HasPrefix(string(f.Package()), "contextd.") || f.Package() == "contextd.v1" {
			return true
		}
		for i := range f.Services().Len() {
			for j := range f.Services().Get(i).Methods().Len() {
				method := f.Services().Get(i).Methods().Get(j)
				got, err := of.call(of.as(t.Context(), "t1"), method, []proto.Message{dynamicpb.NewMessage(method.Input())})
				if tried++; err != nil || !strings.Contains(got, `reason: "PERMISSION_DENIED"`) {
					t.Errorf("%s: %s, %v", method.FullName(), got, err)
				}
			}
		}
		return true
	})
	if tried == 0 {
		t.Error("there is no such service: this test shows nothing")
	}
}

// TestFailedCallsAreCountedByTenant: those that are refused before anyone knows who calls are
// of no tenant, as are the calls of none.
func TestFailedCallsAreCountedByTenant(t *testing.T) {
	address := free(t)
	of := startTenants(t, 1, func(c *config.Config) { c.MetricsListen = address })
	t.Cleanup(func() { of.end(t) })
	of.tokens["stranger"] = "stranger"
	for _, who := range []string{"", "t1", "stranger"} {
		if _, err := of.api().GetSession(of.as(t.Context(), who), &contextdv1.GetSessionRequest{SessionId: "missing"}); err == nil {
			t.Fatal("there is a session that nobody made")
		}
	}
	got := map[string]bool{}
	for line := range strings.Lines(scrape(t, "http://"+address+"/metrics")) {
		if !strings.HasPrefix(line, "contextd_calls_failed_total{") {
			continue
		}
		reason, _, _ := strings.Cut(strings.SplitN(line, `reason="`, 2)[1], `"`)
		got[reason+fmt.Sprint(strings.Contains(line, `otel_scope_tenant="t1"`))] = true
	}
	want := map[string]bool{"SESSION_NOT_FOUNDfalse": true, "SESSION_NOT_FOUNDtrue": true, "UNAUTHENTICATEDfalse": true}
	if !maps.Equal(got, want) {
		t.Errorf("failed calls by reason and tenant: %v, want %v", got, want)
	}
}

// TestPromptCacheKeysAreApart: a provider that two tenants share an account of cannot know that
// their sessions are one. Sessions of no tenant keep their key.
func TestPromptCacheKeysAreApart(t *testing.T) {
	of := startTenants(t, 1, nil)
	t.Cleanup(func() { of.end(t) })
	keys := map[string]string{}
	for _, who := range []string{"", "first", "t1"} {
		as := of.as(t.Context(), who)
		_, err := of.api().AppendEvents(as, say("s", "hello"))
		check(t, err)
		stream, err := of.api().AssembleContext(as, &contextdv1.AssembleContextRequest{SessionId: "s", Format: contextdv1.Format_FORMAT_OPENAI_CHAT})
		check(t, err)
		first, err := stream.Recv()
		check(t, err)
		keys[first.GetHeader().GetPromptCacheKey()] = who
	}
	if len(keys) != 3 {
		t.Errorf("the keys are %v", keys)
	}
	if who, ok := keys["contextd-c71de3ffb4078e4d"]; !ok || who != "" {
		t.Errorf("the key of a session of no tenant has changed: %v", keys)
	}
}
