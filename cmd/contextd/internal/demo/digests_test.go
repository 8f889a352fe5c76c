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

// TestDigestsOfTheDemo holds a page of the docs to what is written of the demo's session
// under three budgets, or writes it.
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
		stream, err := api.AssembleContext(t.Context(), &contextdv1.AssembleContextRequest{
			SessionId: "demo", Budget: &contextdv1.Budget{MaxTokens: tokens, Tokenizer: "o200k_base"}, Preview: true,
			MessageForm: contextdv1.MessageForm_MESSAGE_FORM_VALUE,
		})
		if err != nil {
			t.Fatal(err)
		}
		want += fmt.Sprintf("\n## %d tokens\n\n~~~~text\n%s~~~~\n", tokens, digestOf(t, stream.Recv))
	}
	if *Rewrite {
		if err := os.WriteFile(digestsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(page) != want {
		t.Errorf("%s shows something else; -rewrite makes it this:\n%s", digestsPage, want)
	}
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
