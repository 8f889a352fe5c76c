package demo

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

const digestsPage = "../../../../docs/digests.md"

// TestDigestsOfTheDemo compares a page of the docs with the digests of the demo's session under three
// budgets, or with -rewrite updates it.
func TestDigestsOfTheDemo(t *testing.T) {
	page, err := os.ReadFile(digestsPage)
	if err != nil {
		t.Fatal(err)
	}
	intro, _, _ := strings.Cut(string(page), "\n## ")
	want := strings.TrimRight(intro, "\n") + "\n"
	events, err := readSession(bytes.NewReader(bundled))
	if err != nil {
		t.Fatal(err)
	}
	daemon, err := start(t.Context(), t.TempDir(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := daemon.close(); err != nil {
			t.Error(err)
		}
	}()
	api := contextdv1.NewContextServiceClient(daemon.conn)
	if _, err := api.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: "demo", Events: events}); err != nil {
		t.Fatal(err)
	}
	for _, tokens := range []uint64{8_000, 16_000, 32_000} {
		want += fmt.Sprintf("\n## %d tokens\n\n~~~~text\n%s~~~~\n", tokens, digestUnder(t, api, "demo", tokens))
	}
	if _, err := api.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: "open", Events: openWork()}); err != nil {
		t.Fatal(err)
	}
	want += "\n## What is open\n\nNothing was open when the session above ended. This is the digest of another session, at 8,000 tokens, which has a plan\n" +
		"and a failing test, and whose calls all run in one folder:\n\n~~~~text\n" + digestUnder(t, api, "open", 8_000) + "~~~~\n"
	if *Rewrite {
		if err := os.WriteFile(digestsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(page) != want {
		t.Errorf("%s shows something else; -rewrite makes it this:\n%s", digestsPage, want)
	}
}

// openWork is a session with a plan and a failure.
func openWork() []*contextdv1.Event {
	var events []*contextdv1.Event
	say := func(role contextdv1.Role, blocks ...*contextdv1.Block) {
		events = append(events, &contextdv1.Event{EventId: fmt.Sprint("open-", len(events)), Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{Role: role, Blocks: blocks}}})
	}
	text := func(s string) *contextdv1.Block {
		return &contextdv1.Block{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: s}}}
	}
	call := func(tool, arguments, body string, failed bool) {
		id := fmt.Sprint("call-", len(events))
		say(contextdv1.Role_ROLE_ASSISTANT, &contextdv1.Block{Kind: &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{CallId: id, Name: tool, ArgumentsJson: []byte(arguments)}}})
		say(contextdv1.Role_ROLE_TOOL, &contextdv1.Block{Kind: &contextdv1.Block_ToolResult{ToolResult: &contextdv1.ToolResult{CallId: id, Content: []*contextdv1.Block{text(body)}, IsError: failed}}})
	}
	run := func(command, body string, failed bool) {
		call("shell", fmt.Sprintf(`{"cmd":%q,"workdir":"/home/ann/parser","timeout_ms":10000}`, command), body, failed)
	}
	plan := func(first, second string) {
		call("update_plan", fmt.Sprintf(`{"plan":[{"step":"Read a number with a sign","status":%q},{"step":"Refuse a number that is too large","status":%q},{"step":"Say in the README which numbers are read","status":"pending"}]}`, first, second), "Plan updated", false)
	}
	say(contextdv1.Role_ROLE_USER, text("Read signed numbers, and refuse those that are too large."))
	plan("in_progress", "pending")
	run("cat number.go", "package parser\n\n// Number reads a number.\nfunc Number(text string) (int, error) {\n\treturn strconv.Atoi(text)\n}\n", false)
	run("go test ./number -run TestSigned", "--- FAIL: TestSigned (0.00s)\n    number_test.go:12: \"-1\" is refused\nFAIL", true)
	call("edit", `{"path":"/home/ann/parser/number.go","old":"strconv.Atoi(text)","new":"parseSigned(text)"}`, "1 line changed", false)
	run("go test ./number -run TestSigned", "ok  \tparser/number\t0.004s", false)
	plan("completed", "in_progress")
	run("go test ./limits", "--- FAIL: TestLargest (0.00s)\n    limits_test.go:31: 9223372036854775808 is read as -9223372036854775808\nFAIL", true)
	run("git commit -am 'Read signed numbers'", "[main 1f0c2aa] Read signed numbers\n 1 file changed", false)
	for i := range 16 {
		run(fmt.Sprintf("go test ./part%d -bench .", i+1), strings.Repeat(fmt.Sprintf("reading part %d takes as long as it took before\n", i+1), 40), false)
	}
	return events
}

func digestUnder(t *testing.T, api contextdv1.ContextServiceClient, session string, tokens uint64) string {
	t.Helper()
	stream, err := api.AssembleContext(t.Context(), &contextdv1.AssembleContextRequest{
		SessionId: session, Budget: &contextdv1.Budget{MaxTokens: tokens, Tokenizer: "o200k_base"}, Preview: true,
		MessageForm: contextdv1.MessageForm_MESSAGE_FORM_VALUE,
	})
	if err != nil {
		t.Fatal(err)
	}
	return digestOf(t, stream.Recv)
}

// digestOf is the text of a context's digest.
func digestOf(t *testing.T, receive func() (*contextdv1.AssembleContextResponse, error)) string {
	t.Helper()
	for {
		part, err := receive()
		if err != nil {
			t.Fatalf("the context has no digest: %v", err)
		}
		for _, m := range part.GetChunk().GetMessages() {
			for _, b := range m.GetMessage().GetBlocks() {
				if text := b.GetText().GetText(); strings.HasPrefix(text, "[contextd: earlier messages") {
					return text
				}
			}
		}
	}
}
