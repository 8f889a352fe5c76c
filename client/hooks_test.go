package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/contextd/contextd/client"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// A runtime vetoes a compaction, and is notified of one that happened.
func TestHooks(t *testing.T) {
	c := inMemory(t)
	fill(t, c, 6)
	before := make(chan *contextdv1.HookCall)
	after := make(chan *contextdv1.HookCall)
	decisions := make(chan *contextdv1.HookReply)
	serving, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- c.RunHooks(serving, client.Hooks{
			SessionIDs: []string{"s"},
			PreCompact: func(ctx context.Context, call *contextdv1.HookCall) (*contextdv1.HookReply, error) {
				before <- call
				return <-decisions, nil
			},
			PostCompact: func(ctx context.Context, call *contextdv1.HookCall) error {
				select {
				case after <- call:
				case <-ctx.Done(): // of one that began before the subscription had arrived
				}
				return nil
			},
		})
	}()
	compact := func() <-chan *contextdv1.CompactSessionResponse {
		answers := make(chan *contextdv1.CompactSessionResponse, 1)
		go func() {
			resp, err := c.CompactSession(t.Context(), &contextdv1.CompactSessionRequest{SessionId: "s", Strategy: "mask", KeepLastTurns: 1})
			if err != nil {
				t.Error(err)
			}
			answers <- resp
		}()
		return answers
	}
	var asked *contextdv1.HookCall
	var vetoed <-chan *contextdv1.CompactSessionResponse
	for asked == nil { // until the subscription has arrived
		vetoed = compact()
		select {
		case asked = <-before:
		case <-vetoed:
		}
		if asked == nil {
			fill(t, c, 4)
		}
	}
	decisions <- &contextdv1.HookReply{Decision: "block", Reason: "not now"}
	if resp := <-vetoed; resp.GetOutcome() != "vetoed" || !strings.Contains(resp.GetDetail(), "not now") {
		t.Errorf("a veto is answered %v", resp)
	}
	fill(t, c, 8)
	allowed := compact()
	<-before
	decisions <- nil
	if call := <-after; call.GetSessionId() != "s" || call.GetTokensAfter() >= call.GetTokensBefore() {
		t.Errorf("told of %v", call)
	}
	if resp := <-allowed; resp.GetOutcome() != "compacted" {
		t.Errorf("allowed is answered %v", resp)
	}
	stop()
	if err := <-served; err == nil {
		t.Error("hooks end without an error")
	}
}

// A runtime writes the summaries that the daemon asks for.
func TestSummaries(t *testing.T) {
	settings := filepath.Join(t.TempDir(), "contextd.yaml")
	if err := os.WriteFile(settings, []byte("summarizers: {own: {type: pull}}\ndefault_summarizer: own\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, "127.0.0.1:0", "--store", "memory", "--config", settings).connect(t)
	fill(t, c, 6)
	working, stop := context.WithCancel(t.Context())
	worked := make(chan error, 1)
	go func() {
		worked <- c.RunSummaries(working, &contextdv1.LeaseSummaryTasksRequest{WorkerId: "w"},
			func(_ context.Context, task *contextdv1.SummaryTask) (*contextdv1.CompleteSummaryTaskRequest, error) {
				if !strings.Contains(task.GetPrompt(), "line of result") {
					return nil, errors.New("the prompt lacks what is to be summarized")
				}
				return &contextdv1.CompleteSummaryTaskRequest{Text: "Six files were read.", Model: "m"}, nil
			})
	}()
	resp, err := c.CompactSession(t.Context(), &contextdv1.CompactSessionRequest{SessionId: "s", Strategy: "summarize", KeepLastTurns: 1})
	if err != nil || !strings.Contains(resp.GetSummary().GetText(), "Six files were read.") {
		t.Errorf("compacted: %v, %v", resp, err)
	}
	stop()
	if err := <-worked; err == nil {
		t.Error("the worker ends without an error")
	}
}

// A transcript goes in, comes out as another harness's, and is converted to the same without a
// session.
func TestTranscripts(t *testing.T) {
	c, ctx := inMemory(t), t.Context()
	const transcript = `[{"role":"system","content":"You repair builds."},{"role":"user","content":"Why does make fail?"},` +
		`{"role":"assistant","content":"A semicolon is missing."}]`
	imported, err := c.Import(ctx, &contextdv1.ImportHeader{SessionId: "s"}, strings.NewReader(transcript))
	if err != nil || imported.GetEvents() != 3 {
		t.Fatalf("imported %v, %v", imported, err)
	}
	var exported, converted bytes.Buffer
	report, err := c.Export(ctx, &contextdv1.ExportTranscriptRequest{SessionId: "s", Harness: "pi", HarnessSessionId: "x"}, &exported)
	if err != nil || report.GetEntries() == 0 || !strings.Contains(exported.String(), "A semicolon is missing.") {
		t.Errorf("exported %v, %v: %s", report, err, &exported)
	}
	if _, err := c.Convert(ctx, &contextdv1.ConvertHeader{To: "pi", HarnessSessionId: "x"}, strings.NewReader(transcript), &converted); err != nil || !strings.Contains(converted.String(), "A semicolon is missing.") {
		t.Errorf("converted: %v: %s", err, &converted)
	}
	cut := io.MultiReader(strings.NewReader(transcript), iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, err := c.Import(ctx, &contextdv1.ImportHeader{SessionId: "cut"}, cut); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a transcript that was cut off was imported: %v", err)
	}
	_, err = c.Import(ctx, &contextdv1.ImportHeader{SessionId: "t", Harness: "none"}, strings.NewReader(strings.Repeat(transcript, 5000)))
	if !errors.Is(err, client.ErrInvalid) {
		t.Errorf("an unknown harness is answered %v", err)
	}
}
