package server_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func text(s string) *contextdv1.Block {
	return &contextdv1.Block{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: s}}}
}

func message(role contextdv1.Role, blocks ...*contextdv1.Block) *contextdv1.Event {
	return &contextdv1.Event{Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{Role: role, Blocks: blocks}}}
}

func user(s string) *contextdv1.Event { return message(contextdv1.Role_ROLE_USER, text(s)) }

func call(id, name, arguments string) *contextdv1.Block {
	return &contextdv1.Block{Kind: &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{
		CallId: id, Name: name, ArgumentsJson: []byte(arguments),
	}}}
}

func result(id string, content ...*contextdv1.Block) *contextdv1.Block {
	return &contextdv1.Block{Kind: &contextdv1.Block_ToolResult{ToolResult: &contextdv1.ToolResult{CallId: id, Content: content}}}
}

func conversation() []*contextdv1.Event {
	return []*contextdv1.Event{
		message(contextdv1.Role_ROLE_SYSTEM, text("You are an agent.")),
		user("List the files."),
		message(contextdv1.Role_ROLE_ASSISTANT, text("I will."), call("c1", "ls", `{"path": "/", "depth": 1.0}`)),
		message(contextdv1.Role_ROLE_TOOL, result("c1", text("bin\netc\n"))),
	}
}

// assembled is a context as a client received it.
type assembled struct {
	header   *contextdv1.ContextHeader
	messages []*contextdv1.RenderedMessage
	trailer  *contextdv1.ContextTrailer
}

func (a *api) assemble(t *testing.T, req *contextdv1.AssembleContextRequest) (assembled, error) {
	t.Helper()
	stream, err := a.AssembleContext(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := received(stream.Recv)
	var out assembled
	for _, resp := range parts {
		switch part := resp.GetPart().(type) {
		case *contextdv1.AssembleContextResponse_Header:
			out.header = part.Header
		case *contextdv1.AssembleContextResponse_Chunk:
			out.messages = append(out.messages, part.Chunk.GetMessages()...)
		case *contextdv1.AssembleContextResponse_Trailer:
			out.trailer = part.Trailer
		}
	}
	return out, err
}

// received reads a stream to its end.
func received[R any](recv func() (R, error)) (parts []R, err error) {
	for {
		part, err := recv()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return parts, err
		}
		parts = append(parts, part)
	}
}

func hashOf(messages []*contextdv1.RenderedMessage) string {
	h := sha256.New()
	for _, m := range messages {
		h.Write(m.GetJson())
		h.Write([]byte("\n"))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func TestAppendThenAssemble(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		appended, err := a.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: "s", Events: conversation()})
		if err != nil {
			t.Fatal(err)
		}
		if appended.GetFirstSeq() != 1 || appended.GetLastSeq() != 4 || len(appended.GetReceipts()) != 4 {
			t.Fatalf("appended %v", appended)
		}
		got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s"})
		if err != nil {
			t.Fatal(err)
		}
		if hash := hashOf(got.messages); got.header.GetPrefixHash() != hash || got.trailer.GetContextHash() != hash {
			t.Errorf("the messages hash to %s; header says %s, trailer %s", hash, got.header.GetPrefixHash(), got.trailer.GetContextHash())
		}
		if len(got.messages) != 4 || got.header.GetMessageCount() != 4 {
			t.Errorf("got %d messages of %d", len(got.messages), got.header.GetMessageCount())
		}
		again, err := a.assemble(t, &contextdv1.AssembleContextRequest{
			SessionId: "s",
			Have:      &contextdv1.Have{MessageCount: 4, PrefixHash: got.header.GetPrefixHash()},
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(again.messages) != 0 || again.header.GetSkippedMessages() != 4 {
			t.Errorf("held everything, was sent %d and skipped %d", len(again.messages), again.header.GetSkippedMessages())
		}
	})
}
