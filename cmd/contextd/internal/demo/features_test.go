package demo

import (
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// requests are the requests for each RPC, in this order; several are sent as a stream.
var requests = []struct {
	rpc  string
	send []string
}{
	{"CreateSession", []string{`{"session_id":"s"}`}},
	{"AppendEvents", []string{`{"session_id":"s","events":[` + anEvent + `]}`}},
	{"AppendEventStream", []string{`{"append":{"session_id":"s","events":[` + anEvent + `]}}`}},
	{"GetSession", []string{`{"session_id":"s"}`}},
	{"ListSessions", []string{`{}`}},
	{"ForkSession", []string{`{"session_id":"s","new_session_id":"fork"}`}},
	{"DeleteSession", []string{`{"session_id":"fork"}`}},
	{"ReadEvents", []string{`{"session_id":"s"}`}},
	{"AssembleContext", []string{`{"session_id":"s"}`}},
	{"ProjectTranscript", []string{`{"events":[` + anEvent + `]}`}},
	{"ListProjections", []string{`{"session_id":"s"}`}},
	{"ReplayProjection", []string{`{"session_id":"s","projection_id":"p2-0001"}`}},
	{"RenderProjection", []string{`{"session_id":"s","projection_id":"p2-0001"}`}},
	{"ResolvePointer", []string{`{"session_id":"s","pointer":"ctx:1.0"}`}},
	{"ListRecallTools", []string{`{"session_id":"s"}`}},
	{"CallRecallTool", []string{`{"session_id":"s","name":"recall","arguments_json":"e30="}`}},
	{"CountTokens", []string{`{"text":"x"}`}},
	{"ListModelCalls", []string{`{"session_id":"s"}`}},
	{"RecordModelCall", []string{`{"session_id":"s","projection_id":"p2-0001","model":"m","input_tokens":1}`}},
	{"ExplainCall", []string{`{"session_id":"s","text":"x"}`}},
	{"CompactSession", []string{`{"session_id":"s","mode":"manual","strategy":"mask"}`}},
	{"UndoCompaction", []string{`{"session_id":"s"}`}},
	{"ListSummaries", []string{`{"session_id":"s"}`}},
	{"LeaseSummaryTasks", []string{`{"worker_id":"w","session_ids":["s"]}`}},
	{"CompleteSummaryTask", []string{`{"task_id":"t","text":"x"}`}},
	{"ServeHooks", []string{`{"subscribe":{"session_ids":["s"],"pre_compact":true}}`}},
	{"WatchLifecycle", []string{`{"session_ids":["s"]}`}},
	{"ImportTranscript", []string{`{"header":{"session_id":"i"}}`, `{"data":"` + aTranscript + `"}`}},
	{"ExportTranscript", []string{`{"session_id":"s","harness":"claude"}`}},
	{"ConvertTranscript", []string{`{"header":{"to":"claude"}}`, `{"data":"` + aTranscript + `"}`}},
}

const (
	anEvent = `{"message":{"role":"ROLE_USER","blocks":[{"text":{"text":"x"}}]}}`
	// [{"role":"user","content":"x"}]
	aTranscript = "W3sicm9sZSI6InVzZXIiLCJjb250ZW50IjoieCJ9XQ=="
)

// TestReadmeSaysWhichRPCsAreThere calls each RPC of the API, and compares the results with the README's
// table.
func TestReadmeSaysWhichRPCsAreThere(t *testing.T) {
	named := readmeRPCs(t)
	d, err := start(t.Context(), t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
	}()
	methods := map[string]protoreflect.MethodDescriptor{}
	for _, file := range []protoreflect.FileDescriptor{
		contextdv1.File_contextd_v1_context_service_proto,
		contextdv1.File_contextd_v1_compaction_service_proto,
		contextdv1.File_contextd_v1_transcript_service_proto,
	} {
		for i := range file.Services().Len() {
			all := file.Services().Get(i).Methods()
			for j := range all.Len() {
				methods[string(all.Get(j).Name())] = all.Get(j)
			}
		}
	}
	for _, r := range requests {
		m := methods[r.rpc]
		if m == nil {
			t.Fatalf("there is no RPC %s", r.rpc)
		}
		delete(methods, r.rpc)
		err := ask(t, d.conn, m, r.send)
		switch got := status.Code(err); {
		case !slices.Contains(named, r.rpc):
			t.Errorf("README.md does not name %s", r.rpc)
		case got == codes.FailedPrecondition && reasonIn(err) == apierr.ReasonNotConfigured:
			// The RPC needs a configuration that the demo does not have.
		case got != codes.OK:
			t.Errorf("%s is there, says README.md; it answers %s", r.rpc, got)
		}
	}
	for name := range methods {
		t.Errorf("nobody asks %s", name)
	}
}

func TestReadmeSaysWhichFeaturesAreThere(t *testing.T) {
	d, err := start(t.Context(), t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
	}()
	project := contextdv1.File_contextd_v1_context_service_proto.Services().ByName("ContextService").Methods().ByName("ProjectTranscript")
	for _, members := range []string{
		`"policy":{"projection":{"policy":"raw"}}`,
		`"policy":{"projection":{"policy":"clean_tool_repair"}}`,
		`"policy":{"projection":{"policy":"squash_failed_calls"}}`,
		`"policy":{"projection":{"policy":"summary_prefix"}}`,
		`"policy":{"projection":{"policy":"reachability_gc"}}`,
		`"policy":{"projection":{"policy":"custom","expression":"age < 9"}}`,
		`"policy":{"summarization":{"enabled":true}}`,
		`"format":"FORMAT_ANTHROPIC"`,
		`"format":"FORMAT_OPENAI_CHAT"`,
		`"format":"FORMAT_OPENAI_RESPONSES"`,
		`"format":"FORMAT_GEMINI"`,
		`"budget":{"tokenizer":"cl100k_base"}`,
		`"budget":{"tokenizer":"heuristic"}`,
	} {
		if got := status.Code(ask(t, d.conn, project, []string{`{"events":[` + anEvent + `],` + members + `}`})); got != codes.OK {
			t.Errorf("%s is there, says README.md; it answers %s", members, got)
		}
	}
}

// reasonIn is the stable reason of an error.
func reasonIn(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

// readmeRPCs are the RPCs that the README's table names.
func readmeRPCs(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| RPC |")
	table, _, _ = strings.Cut(table, "\n\n")
	var names []string
	for _, m := range regexp.MustCompile("`([A-Z]\\w+)`").FindAllStringSubmatch(table, -1) {
		names = append(names, m[1])
	}
	return names
}

// open are RPCs whose streams stay open. They are implemented if they send headers.
var open = []string{"ServeHooks", "WatchLifecycle"}

// ask calls an RPC of any kind and returns its error.
func ask(t *testing.T, conn *grpc.ClientConn, m protoreflect.MethodDescriptor, send []string) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: m.IsStreamingClient(), ServerStreams: m.IsStreamingServer()},
		"/"+string(m.Parent().FullName())+"/"+string(m.Name()))
	if err != nil {
		return err
	}
	for _, text := range send {
		req := newMessage(t, m.Input())
		if err := protojson.Unmarshal([]byte(text), req); err != nil {
			t.Fatalf("%s: %v", m.Name(), err)
		}
		if err := stream.SendMsg(req); err != nil {
			break // Recv returns the reason
		}
	}
	if slices.Contains(open, string(m.Name())) {
		_, err := stream.Header()
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		err := stream.RecvMsg(newMessage(t, m.Output()))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || !m.IsStreamingServer() {
			return err
		}
	}
}

func newMessage(t *testing.T, d protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		t.Fatal(err)
	}
	return kind.New().Interface()
}
