package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/contextd/contextd/cmd/contextd/internal/auth"
	"github.com/contextd/contextd/cmd/contextd/internal/config"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// secret is in all that the first tenant writes.
const secret = "moonshine"

// tenants is a daemon whose callers have tokens.
type tenants struct {
	*running
	tokens map[string]string // by tenant
	next   int
	// file lists the tokens, as entries of tenants, and signals has it read again.
	file    string
	entries map[string]auth.TokenEntry
	signals chan os.Signal
}

// startTenants runs a daemon for tenants named first, t1, t2 and so on.
func startTenants(t *testing.T, n int, change func(*config.Config)) *tenants {
	t.Helper()
	of := &tenants{
		tokens: map[string]string{}, entries: map[string]auth.TokenEntry{},
		file: filepath.Join(t.TempDir(), "tokens.yaml"), signals: make(chan os.Signal),
	}
	names := []string{"", "first"}
	for i := range n {
		names = append(names, fmt.Sprintf("t%d", i+1))
	}
	for _, name := range names {
		token, entry, err := auth.NewToken("of-"+name, name)
		if err != nil {
			t.Fatal(err)
		}
		of.tokens[name], of.entries[name] = token, entry
	}
	of.list(t)
	o := options(t, settings(t, func(c *config.Config) {
		c.Store, c.Auth.TokenFile = config.StoreMemory, of.file
		if change != nil {
			change(c)
		}
	}))
	o.Logger = lines{t}.logged(o.Config)
	o.Reloads, o.Reload = of.signals, func() (config.Config, error) { return o.Config, nil }
	of.running = startWith(t, o)
	return of
}

// list writes the file of tokens.
func (of *tenants) list(t *testing.T) {
	t.Helper()
	listed, err := yaml.Marshal(slices.Collect(maps.Values(of.entries)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(of.file, listed, 0o600); err != nil {
		t.Fatal(err)
	}
}

// as is the context of calls of a tenant.
func (of *tenants) as(ctx context.Context, name string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+of.tokens[name])
}

// fresh is a tenant that nobody was yet.
func (of *tenants) fresh() string {
	of.next++
	return fmt.Sprintf("t%d", of.next)
}

// call sends messages and returns all that comes back, without what differs from time to time.
func (of *tenants) call(ctx context.Context, method protoreflect.MethodDescriptor, messages []proto.Message) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	path := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
	stream, err := of.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, path)
	if err != nil {
		return "", err
	}
	for _, m := range messages {
		if err := stream.SendMsg(m); err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return "", err
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for {
		answer := kind.New().Interface()
		err := stream.RecvMsg(answer)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fmt.Fprintln(&out, prototext.Format(status.Convert(err).Proto()))
			break
		}
		fmt.Fprintln(&out, prototext.Format(answer))
	}
	return varying.ReplaceAllString(strings.Join(strings.Fields(out.String()), " "), "$1: …"), nil
}

// varying is what differs between two sessions that are alike: times, and what is counted
// over all tenants.
var varying = regexp.MustCompile(`(seconds|nanos|incarnation|prompt_cache_key|\\"timestamp\\"): ?("[^"]*"|\\"[^"]*\\"|[0-9]+)`)

// settle gives the first tenant one of everything, and returns the names. A compaction waits
// for the summary of its task.
func (of *tenants) settle(t *testing.T) (names map[string]string, compacted <-chan error) {
	t.Helper()
	ctx := of.as(t.Context(), "first")
	api, compaction := of.api(), contextdv1.NewCompactionServiceClient(of.conn)
	label := map[string]string{secret: secret}
	created, err := api.CreateSession(ctx, &contextdv1.CreateSessionRequest{SessionId: "mine", Labels: label, Policy: &contextdv1.Policy{RecallTool: proto.String("look")}})
	check(t, err)
	_, err = api.CreateSession(ctx, &contextdv1.CreateSessionRequest{SessionId: "mine-2"})
	check(t, err)
	events := []*contextdv1.Event{said(contextdv1.Role_ROLE_USER, text(secret))}
	events[0].EventId = "event-1"
	for i := range 8 {
		call := fmt.Sprintf("toolcall-%d", i)
		events = append(events,
			said(contextdv1.Role_ROLE_ASSISTANT, &contextdv1.Block{Kind: &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{CallId: call, Name: "f", ArgumentsJson: []byte("{}")}}}),
			said(contextdv1.Role_ROLE_TOOL, &contextdv1.Block{Kind: &contextdv1.Block_ToolResult{ToolResult: &contextdv1.ToolResult{
				CallId: call, Content: []*contextdv1.Block{text(strings.Repeat(secret+" ", 400))},
			}}}),
		)
	}
	open := said(contextdv1.Role_ROLE_ASSISTANT, &contextdv1.Block{Kind: &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{CallId: "toolcall-open", Name: "f", ArgumentsJson: []byte("{}")}}})
	open.GetMessage().GroupId = "group-1"
	reminder := &contextdv1.Event{Kind: &contextdv1.Event_Reminder{Reminder: &contextdv1.Reminder{Body: secret, DedupeKey: "dedupe-1"}}}
	_, err = api.AppendEvents(ctx, &contextdv1.AppendEventsRequest{SessionId: "mine", Events: append(events, reminder, open)})
	check(t, err)
	var header *contextdv1.ContextHeader
	for _, key := range []string{"key-1", "key-2"} {
		stream, err := api.AssembleContext(ctx, &contextdv1.AssembleContextRequest{SessionId: "mine", IdempotencyKey: key})
		check(t, err)
		first, err := stream.Recv()
		check(t, err)
		header = first.GetHeader()
		for err == nil {
			_, err = stream.Recv()
		}
	}
	sessions, err := api.ListSessions(ctx, &contextdv1.ListSessionsRequest{PageSize: 1})
	check(t, err)
	projections, err := api.ListProjections(ctx, &contextdv1.ListProjectionsRequest{SessionId: "mine", PageSize: 1})
	check(t, err)

	// A worker has a task, which is left to wait.
	summarized := make(chan error, 1)
	go func() {
		_, err := compaction.CompactSession(ctx, &contextdv1.CompactSessionRequest{SessionId: "mine", Strategy: "summarize", KeepLastTurns: 1})
		summarized <- err
	}()
	leasing, cancel := context.WithCancel(ctx)
	defer cancel()
	tasks, err := compaction.LeaseSummaryTasks(leasing, &contextdv1.LeaseSummaryTasksRequest{WorkerId: "own"})
	check(t, err)
	task, err := tasks.Recv()
	check(t, err)
	return map[string]string{
		"session": "mine", "other": "mine-2", "label": secret, "event": "event-1", "toolcall": "toolcall-open", "group": "group-1",
		"dedupe": "dedupe-1", "key": "key-1", "incarnation": created.GetSession().GetIncarnation(), "projection": header.GetProjectionId(),
		"hash": header.GetPrefixHash(), "pointer": "ctx:1.0", "page": sessions.GetNextPageToken(), "projectionpage": projections.GetNextPageToken(),
		"task": task.GetTask().GetTaskId(), "summary": "s1-mine", "summarypage": "MSBzMS1taW5l", "call": "mine.1.1",
	}, summarized
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// nothings are names of nothing, which look like the names of something.
func nothings(names map[string]string) map[string]string {
	other := map[string]string{}
	for kind := range names {
		other[kind] = "nothing-" + kind
	}
	seq, _, _ := strings.Cut(names["projection"], "-")
	other["projection"], other["summary"], other["summarypage"] = seq+"-0099", "s1-nothing", "MSBzMS1ub3RoaW5n"
	other["hash"] = "sha256:" + strings.Repeat("0", 64)
	other["page"], other["projectionpage"] = "bm90aGluZw", "cDAtMDAwMA"
	other["pointer"] = names["pointer"] // it is of the session that is named with it
	return other
}

// named has the answer to a call with some names look as if it had been made with others.
func named(text string, from, to map[string]string) string {
	for kind, name := range from {
		text = strings.ReplaceAll(text, name, to[kind])
	}
	return text
}

// TestTenantsAreApart calls every method with every name that another tenant has for
// something, and with names of nothing: the answers are the same. So it is for a tenant that
// has nothing, and for one that has a session of the same id.
func TestTenantsAreApart(t *testing.T) {
	kinds, calls := naming(t), examples(t)
	of := startTenants(t, 4*len(calls), func(c *config.Config) {
		c.Summarizers, c.DefaultSummarizer = map[string]config.Summarizer{"house": {Type: config.SummarizerPull}}, "house"
	})
	t.Cleanup(func() { of.end(t) })
	names, compacted := of.settle(t)
	before := of.everything(t)
	values := map[string]map[string]bool{}
	strangers := make([]string, len(calls))
	for i, c := range calls {
		for _, m := range c.messages(t, names) {
			used(m.ProtoReflect(), values)
		}
		if c.endless {
			continue
		}
		nothing := nothings(names)
		got := of.mustCall(t, of.fresh(), c, names)
		want := of.mustCall(t, of.fresh(), c, nothing)
		if strangers[i] = got; got != named(want, nothing, names) {
			t.Errorf("%s tells a stranger what exists:\n%s\n%s", c.method.FullName(), got, want)
		}
		nothing["session"] = names["session"]
		got = of.mustCall(t, of.namesake(t), c, names)
		want = of.mustCall(t, of.namesake(t), c, nothing)
		if got != named(want, nothing, names) {
			t.Errorf("%s tells a namesake what exists:\n%s\n%s", c.method.FullName(), got, want)
		}
	}
	for f, kind := range kinds {
		if kind != "-" && !values[f][names[kind]] {
			t.Errorf("no call has another tenant's %s in %s", kind, f)
		}
	}
	if after := of.everything(t); after != before {
		t.Errorf("what the first tenant has was changed:\n%s\n%s", before, after)
	}
	// What the calls ask for exists: its owner gets another answer.
	for i, c := range calls {
		if c.method.Name() == "DeleteSession" {
			check(t, <-compacted)
		}
		if !c.endless && (strings.Contains(c.text, "{session}") || strings.Contains(c.text, "{task}")) {
			if got := of.mustCall(t, "first", c, names); got == strangers[i] {
				t.Errorf("%s says the same to the owner: %s", c.method.FullName(), got)
			}
		}
	}
}

// mustCall makes a call as a tenant. No other is shown the first one's content.
func (of *tenants) mustCall(t *testing.T, tenant string, c example, names map[string]string) string {
	t.Helper()
	got, err := of.call(of.as(t.Context(), tenant), c.method, c.messages(t, names))
	if err != nil {
		t.Fatalf("%s: %v", c.method.FullName(), err)
	}
	if tenant != "first" && strings.Contains(got, secret) {
		t.Errorf("%s shows what another tenant wrote: %s", c.method.FullName(), got)
	}
	return got
}

// namesake is a fresh tenant with a session that has the id of the first one's.
func (of *tenants) namesake(t *testing.T) string {
	t.Helper()
	tenant := of.fresh()
	own := say("mine", "other")
	own.Events[0].EventId = "own"
	_, err := of.api().AppendEvents(of.as(t.Context(), tenant), own)
	check(t, err)
	return tenant
}

// everything is what the first tenant has.
func (of *tenants) everything(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for _, c := range examples(t) {
		switch c.method.Name() {
		case "ListSessions", "ReadEvents", "ListProjections", "ListSummaries":
			out.WriteString(of.mustCall(t, "first", c, map[string]string{"session": "mine", "page": "", "projectionpage": "", "summarypage": "", "label": secret}))
		}
	}
	return out.String()
}
