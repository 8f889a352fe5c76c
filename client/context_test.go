package client_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/client"
	"github.com/contextd/contextd/client/read"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// Events that are in no log are projected as those of a log.
func TestProject(t *testing.T) {
	c, ctx := inMemory(t), t.Context()
	fill(t, c, 3)
	var events []*contextdv1.Event
	for e, err := range c.Events(ctx, &contextdv1.ReadEventsRequest{SessionId: "s"}) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	budget, format := &contextdv1.Budget{MaxTokens: 100_000}, contextdv1.Format_FORMAT_ANTHROPIC
	got, err := c.Project(ctx, &contextdv1.ProjectTranscriptRequest{Events: events, Format: format, Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	want, err := c.Assemble(ctx, &contextdv1.AssembleContextRequest{SessionId: "s", Format: format, Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	if got.Header.GetContextHash() != want.Header.GetContextHash() || got.Sent != len(want.Messages) {
		t.Errorf("projected %d messages with %s, assembled %d with %s", got.Sent, got.Header.GetContextHash(), want.Sent, want.Header.GetContextHash())
	}
	if _, err := c.Project(ctx, &contextdv1.ProjectTranscriptRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("without events: %v", err)
	}
}

// A loop: what is new is sent, what was shortened is got back, what was counted is recorded, and
// what the model saw can be asked.
func TestLoop(t *testing.T) {
	c, ctx := inMemory(t), t.Context()
	fill(t, c, 3)
	req := &contextdv1.AssembleContextRequest{
		SessionId: "s", Format: contextdv1.Format_FORMAT_ANTHROPIC, Budget: &contextdv1.Budget{MaxTokens: 100_000},
	}
	first, err := c.Assemble(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	if first.Sent != len(first.Messages) || first.Sent != 8 {
		t.Errorf("%d of %d messages were sent at first", first.Sent, len(first.Messages))
	}
	appendTo(t, c, "s", client.Assistant("claude-sonnet-4-5", client.Text("A semicolon.")), client.User("Thanks. And now?"))
	second, err := c.Assemble(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	if second.Sent != 2 || len(second.Messages) != 10 {
		t.Errorf("%d of %d messages were sent, want 2 of 10", second.Sent, len(second.Messages))
	}

	body, err := second.Body(map[string]any{"model": "m<1>", "max_tokens": 5})
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(body) || !bytes.HasPrefix(body, []byte(`{"max_tokens":5,"model":"m<1>","system":[{"type":"text","text":"You repair builds."`)) {
		t.Errorf("body %.200s", body)
	}
	if got, want := bytes.Count(body, []byte(`"cache_control":{"type":"ephemeral"}`)), len(second.Header.GetCacheBreakpoints()); got != want || want == 0 {
		t.Errorf("%d cache marks, want %d", got, want)
	}
	if !bytes.Contains(body, []byte(`"input":{"n":1.0}`)) {
		t.Error("the arguments have another value")
	}

	answer := []byte(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","stop_reason":"end_turn",
		"content":[{"type":"text","text":"Nothing."}],"usage":{"input_tokens":10,"cache_read_input_tokens":4000,"output_tokens":3}}`)
	said, err := read.Response(answer)
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, c, "s", said)
	counted, err := read.Usage(answer)
	if err != nil {
		t.Fatal(err)
	}
	calibration, err := c.Record(ctx, second, counted)
	if err != nil || calibration <= 0 {
		t.Errorf("calibration %v, %v", calibration, err)
	}
	explained, err := c.ExplainCall(ctx, &contextdv1.ExplainCallRequest{SessionId: "s", Text: "line of result 2"})
	if err != nil || !explained.GetSeen() || explained.GetCall().GetInputTokens() != 4010 {
		t.Errorf("explained %v, %v", explained.GetCall(), err)
	}

	tools := []any{map[string]any{"name": "bash", "description": "Runs a command.", "input_schema": map[string]any{"type": "object"}}}
	wider, err := c.WithTools(ctx, &contextdv1.Budget{MaxTokens: 100_000, OverheadTokens: 7}, req.GetFormat(), tools)
	if err != nil || wider.GetMaxTokens() != 100_000 || wider.GetOverheadTokens() < 17 {
		t.Errorf("a budget with tools: %v, %v", wider, err)
	}

	tight := proto.CloneOf(req)
	tight.Budget = &contextdv1.Budget{MaxTokens: 1500}
	short, err := c.Assemble(ctx, tight)
	if err != nil {
		t.Fatal(err)
	}
	pointers := short.Header.GetProjection().GetRedactionPointers()
	if len(pointers) == 0 || short.Header.GetHaveBroken() == nil {
		t.Fatalf("%d pointers under a tight budget, broken by %v", len(pointers), short.Header.GetHaveBroken())
	}
	text, err := c.Recall(ctx, "s", pointers[0].GetPointer())
	if err != nil || !strings.HasPrefix(text, "line of result") || uint64(len(text)) != pointers[0].GetContentChars() {
		t.Errorf("recalled %.40q, %v", text, err)
	}
}

// The texts in the place of what was dropped name the tool of the session, with a pointer
// that Recall takes.
func TestRecallTool(t *testing.T) {
	c, ctx := inMemory(t), t.Context()
	tool := "recall"
	if _, err := c.CreateSession(ctx, &contextdv1.CreateSessionRequest{SessionId: "s", Policy: &contextdv1.Policy{RecallTool: &tool}}); err != nil {
		t.Fatal(err)
	}
	fill(t, c, 3)
	strict := &contextdv1.Policy{ToolResults: &contextdv1.ToolResultRetention{
		Default: &contextdv1.Retention{Keep: &contextdv1.Retention_Turns{}}, Strict: true,
	}}
	got, err := c.Assemble(ctx, &contextdv1.AssembleContextRequest{SessionId: "s", Budget: &contextdv1.Budget{MaxTokens: 100_000}, Policy: strict})
	if err != nil {
		t.Fatal(err)
	}
	var shown []byte
	for _, m := range got.Messages {
		shown = append(shown, m.GetJson()...)
	}
	call := regexp.MustCompile(`recall\(pointer: \\"(ctx:\d+\.\d+)\\"\)`).FindSubmatch(shown)
	if call == nil {
		t.Fatalf("nothing says how to call the tool: %s", shown)
	}
	if text, err := c.Recall(ctx, "s", string(call[1])); err != nil || text == "" {
		t.Errorf("%q, %v", text, err)
	}
}
