package server_test

import (
	"testing"

	"github.com/contextd/contextd/internal/log/memlog"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// The messages of a context come in the form that was asked for, in every format and from
// each call that sends any.
func TestMessageForms(t *testing.T) {
	a := serve(t, memlog.New())
	a.append(t, "s", conversation()...)
	if _, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s"}); err != nil { // what is rendered below
		t.Fatal(err)
	}
	calls := map[string]func(f contextdv1.Format, form contextdv1.MessageForm) ([]*contextdv1.RenderedMessage, error){
		"assemble": func(f contextdv1.Format, form contextdv1.MessageForm) ([]*contextdv1.RenderedMessage, error) {
			got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Format: f, MessageForm: form})
			return got.messages, err
		},
		"project": func(f contextdv1.Format, form contextdv1.MessageForm) ([]*contextdv1.RenderedMessage, error) {
			stream, err := a.ProjectTranscript(t.Context(), &contextdv1.ProjectTranscriptRequest{Events: conversation(), Format: f, MessageForm: form})
			if err != nil {
				return nil, err
			}
			return messagesOf(stream.Recv)
		},
		"render": func(_ contextdv1.Format, form contextdv1.MessageForm) ([]*contextdv1.RenderedMessage, error) {
			stream, err := a.RenderProjection(t.Context(), &contextdv1.RenderProjectionRequest{SessionId: "s", MessageForm: form})
			if err != nil {
				return nil, err
			}
			return messagesOf(stream.Recv)
		},
	}
	for name, call := range calls {
		for f := range contextdv1.Format_name {
			for number := range contextdv1.MessageForm_name {
				form := contextdv1.MessageForm(number)
				messages, err := call(contextdv1.Format(f), form)
				if err != nil || len(messages) == 0 {
					t.Fatalf("%s as %s: %d messages, %v", name, form, len(messages), err)
				}
				for _, m := range messages {
					if got, want := len(m.GetJson()) > 0, form != contextdv1.MessageForm_MESSAGE_FORM_VALUE; got != want {
						t.Errorf("%s as %s: JSON is there: %v", name, form, got)
					}
					if got, want := m.GetMessage() != nil, form >= contextdv1.MessageForm_MESSAGE_FORM_VALUE; got != want {
						t.Errorf("%s as %s: a value is there: %v", name, form, got)
					}
				}
			}
		}
	}
}

// messagesOf reads the messages of a stream to its end.
func messagesOf[R interface {
	GetChunk() *contextdv1.MessageChunk
}](recv func() (R, error)) (out []*contextdv1.RenderedMessage, err error) {
	parts, err := received(recv)
	for _, part := range parts {
		out = append(out, part.GetChunk().GetMessages()...)
	}
	return out, err
}
