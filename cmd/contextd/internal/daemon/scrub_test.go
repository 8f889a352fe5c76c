package daemon_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/internal/summarize/modeltest"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// token is made at run time, so that no file of the repository looks as if it held one.
var token = "ghp_" + strings.Repeat("aB3dE5gH7", 4)

const mark = "[scrubbed:github_token]"

func TestOtherPartiesModelsGetNoCredentials(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		scrub *bool
		gets  string
	}{
		"unless told otherwise": {nil, mark},
		"where asked for":       {&yes, mark},
		"but where allowed":     {&no, token},
	} {
		t.Run(name, func(t *testing.T) {
			server, house := openAI(t, modeltest.OK)
			house.Scrub = c.scrub
			a := startAgent(t, house)
			a.push(said(contextdv1.Role_ROLE_USER, text("Use "+token+" for it.")))
			a.work(8)
			got, err := a.compaction.CompactSession(t.Context(), &contextdv1.CompactSessionRequest{
				SessionId: "s", Strategy: "summarize", TargetTokens: 1000, Instructions: "Never write " + token + ".",
			})
			if err != nil || got.GetOutcome() != "compacted" || len(server.Requests()) == 0 {
				t.Fatalf("%v, %v, %d requests", got, err, len(server.Requests()))
			}
			for _, r := range server.Requests() {
				for where, sent := range map[string]string{"prompt": r.Prompt, "system": r.System} {
					if !strings.Contains(sent, c.gets) || c.gets != token && strings.Contains(sent, token) {
						t.Errorf("the %s says\n%s", where, sent)
					}
				}
			}
		})
	}
}

func TestTheRuntimesOwnModelGetsWhatItWrote(t *testing.T) {
	a := startAgent(t, config.Summarizer{Type: config.SummarizerPull, Lease: time.Minute})
	a.push(said(contextdv1.Role_ROLE_USER, text("Use "+token+" for it.")))
	a.work(8)
	tasks, err := a.compaction.LeaseSummaryTasks(t.Context(), &contextdv1.LeaseSummaryTasksRequest{WorkerId: "runtime"})
	if err != nil {
		t.Fatal(err)
	}
	compacted := make(chan error, 1)
	go func() {
		_, err := a.compact("summarize")
		compacted <- err
	}()
	resp, err := tasks.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(resp.GetTask().GetPrompt(), token) {
		t.Errorf("the task says\n%s", resp.GetTask().GetPrompt())
	}
	if _, err := a.compaction.CompleteSummaryTask(t.Context(), &contextdv1.CompleteSummaryTaskRequest{TaskId: resp.GetTask().GetTaskId(), Text: "All is well."}); err != nil {
		t.Fatal(err)
	}
	if err := <-compacted; err != nil {
		t.Fatal(err)
	}
}

func TestCredentialsAreNotStored(t *testing.T) {
	c := settings(t, func(c *config.Config) {
		c.ScrubAppends, c.ScrubPatterns = true, map[string]string{"badge": "ACME-[0-9]+"}
	})
	r := start(t, c)
	r.await(t, serving)
	api := r.api()

	event := said(contextdv1.Role_ROLE_USER, text("Use "+token+" and ACME-77."))
	event.EventId = "e1"
	request := &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{event}}
	for again := range 2 {
		got, err := api.AppendEvents(t.Context(), request)
		if err != nil || got.GetReceipts()[0].GetDuplicate() != (again == 1) {
			t.Fatalf("append %d: %v, %v", again+1, got, err)
		}
	}
	if got, want := read(t, api, "s"), "Use "+mark+" and [scrubbed:badge]."; !strings.Contains(got, want) {
		t.Errorf("the log holds %s, want %s", got, want)
	}

	imported := importFile(t, r, "i", `{"type":"user","uuid":"u1","sessionId":"x","cwd":"/w","unknown":"`+token+`","timestamp":"2026-01-02T03:04:05Z","message":{"role":"user","content":"Use `+token+`."}}`+"\n")
	if imported.GetEvents() != 1 || !strings.Contains(read(t, api, "i"), "Use "+mark+".") {
		t.Errorf("imported: %v, %s", imported, read(t, api, "i"))
	}
	if out := export(t, r, "i"); strings.Contains(out, token) || !strings.Contains(out, `"unknown":"`+mark+`"`) {
		t.Errorf("exported:\n%s", out)
	}

	r.end(t)
	err := filepath.WalkDir(c.DataDir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(token)) {
			t.Errorf("%s holds it", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// read is what the log of a session says.
func read(t *testing.T, api contextdv1.ContextServiceClient, session string) string {
	t.Helper()
	stream, err := api.ReadEvents(t.Context(), &contextdv1.ReadEventsRequest{SessionId: session})
	if err != nil {
		t.Fatal(err)
	}
	return drain(t, stream, (*contextdv1.ReadEventsResponse).String)
}

// drain is what a stream's answers say, one after the other.
func drain[R any](t *testing.T, stream grpc.ServerStreamingClient[R], says func(*R) string) string {
	t.Helper()
	var out strings.Builder
	for {
		got, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(says(got))
	}
}

func importFile(t *testing.T, r *running, session, data string) *contextdv1.ImportTranscriptResponse {
	t.Helper()
	stream, err := contextdv1.NewTranscriptServiceClient(r.conn).ImportTranscript(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []*contextdv1.ImportTranscriptRequest{
		{Part: &contextdv1.ImportTranscriptRequest_Header{Header: &contextdv1.ImportHeader{SessionId: session}}},
		{Part: &contextdv1.ImportTranscriptRequest_Data{Data: []byte(data)}},
	} {
		if err := stream.Send(part); err != nil {
			t.Fatal(err)
		}
	}
	out, err := stream.CloseAndRecv()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func export(t *testing.T, r *running, session string) string {
	t.Helper()
	stream, err := contextdv1.NewTranscriptServiceClient(r.conn).ExportTranscript(t.Context(), &contextdv1.ExportTranscriptRequest{SessionId: session, Harness: "claude"})
	if err != nil {
		t.Fatal(err)
	}
	return drain(t, stream, func(r *contextdv1.ExportTranscriptResponse) string { return string(r.GetData()) })
}
