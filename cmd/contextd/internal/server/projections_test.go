package server_test

import (
	"bytes"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// renderAgain receives what RenderProjection sends.
func renderAgain(t *testing.T, a *api, id, projection string) (*contextdv1.ReplayProjectionResponse, []*contextdv1.RenderedMessage, error) {
	t.Helper()
	stream, err := a.RenderProjection(t.Context(), &contextdv1.RenderProjectionRequest{SessionId: id, ProjectionId: projection})
	if err != nil {
		t.Fatal(err)
	}
	parts, err := received(stream.Recv)
	if err != nil {
		return nil, nil, err
	}
	var replay *contextdv1.ReplayProjectionResponse
	var messages []*contextdv1.RenderedMessage
	for _, resp := range parts {
		if resp.GetReplay() != nil {
			replay = resp.GetReplay()
		}
		messages = append(messages, resp.GetChunk().GetMessages()...)
	}
	return replay, messages, nil
}

// TestRenderProjection checks that what was sent can be had again, byte for byte, by
// its name, and the newest without one.
func TestRenderProjection(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		events := longSession(40, 100)
		a.append(t, "s", events[:40]...)
		if _, _, err := renderAgain(t, a, "s", ""); status.Code(err) != codes.NotFound {
			t.Errorf("the newest of none: %v", err)
		}
		if _, _, err := renderAgain(t, a, "none", ""); status.Code(err) != codes.NotFound {
			t.Errorf("of no session: %v", err)
		}
		assemble := func() assembled {
			t.Helper()
			got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Budget: tight()})
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		first := assemble()
		a.append(t, "s", events[40:]...)
		second := assemble()
		for name, want := range map[string]assembled{
			first.header.GetProjectionId(): first, second.header.GetProjectionId(): second, "": second,
		} {
			replay, got, err := renderAgain(t, a, "s", name)
			if err != nil || !replay.GetSame() || replay.GetRecorded().GetProjectionId() != want.header.GetProjectionId() {
				t.Errorf("%q is %s, %v, %v", name, replay.GetRecorded().GetProjectionId(), replay.GetDifference(), err)
			}
			if len(got) != len(want.messages) {
				t.Fatalf("%q has %d messages; want %d", name, len(got), len(want.messages))
			}
			for i := range got {
				if !bytes.Equal(got[i].GetJson(), want.messages[i].GetJson()) || !proto.Equal(got[i], want.messages[i]) {
					t.Errorf("%q: message %d is %v; want %v", name, i, got[i], want.messages[i])
				}
			}
		}
	})
}
