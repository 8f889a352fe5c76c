package server_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func TestExplainCall(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		a.append(t, "s", longSession(40, 100)...)
		got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Budget: tight()})
		if err != nil {
			t.Fatal(err)
		}
		id := got.header.GetProjectionId()
		a.record(t, &contextdv1.RecordModelCallRequest{SessionId: "s", ProjectionId: id, Model: "m", InputTokens: 5000})
		a.record(t, &contextdv1.RecordModelCallRequest{SessionId: "s"})

		for text, seen := range map[string]bool{"src/file_0.go": true, "line 0 of the file": false, "line 39 of the file": true, "nowhere": false} {
			resp, err := a.ExplainCall(t.Context(), &contextdv1.ExplainCallRequest{SessionId: "s", Call: 1, Text: text})
			if err != nil {
				t.Fatal(err)
			}
			sent := false
			for _, m := range got.messages {
				sent = sent || strings.Contains(string(m.GetJson()), text)
			}
			if resp.GetSeen() != seen || sent != seen {
				t.Errorf("%q was seen: %v, and is among the messages: %v; want %v", text, resp.GetSeen(), sent, seen)
			}
			if resp.GetCall().GetProjectionId() != id || resp.GetProjection().GetPrefixHash() != got.header.GetPrefixHash() {
				t.Errorf("%q is explained by %v", text, resp.GetCall())
			}
			for _, s := range resp.GetSightings() {
				if s.GetPointer() == "" {
					continue
				}
				body, err := a.ResolvePointer(t.Context(), &contextdv1.ResolvePointerRequest{SessionId: "s", Pointer: s.GetPointer()})
				if err != nil || !strings.Contains(body.String(), text) {
					t.Errorf("%q does not stand at %s: %v (%v)", text, s.GetPointer(), body, err)
				}
			}
		}
		described, err := a.ExplainCall(t.Context(), &contextdv1.ExplainCallRequest{SessionId: "s"})
		if err != nil || described.GetCall().GetNumber() != 2 || described.GetProjection() != nil {
			t.Errorf("the newest call is %v (%v)", described, err)
		}
		for name, want := range map[string]struct {
			req *contextdv1.ExplainCallRequest
			bad badInput
		}{
			"no session":    {&contextdv1.ExplainCallRequest{SessionId: "nobody"}, badInput{code: codes.NotFound, reason: apierr.ReasonSessionNotFound}},
			"no such call":  {&contextdv1.ExplainCallRequest{SessionId: "s", Call: 3}, badInput{code: codes.NotFound, reason: apierr.ReasonNotFound}},
			"no such block": {&contextdv1.ExplainCallRequest{SessionId: "s", Call: 1, Text: "ctx:9999.0"}, badInput{code: codes.NotFound, reason: apierr.ReasonNotFound}},
			"no projection": {&contextdv1.ExplainCallRequest{SessionId: "s", Text: "x"}, badInput{code: codes.InvalidArgument, reason: invalid, field: "text"}},
			"a long text":   {&contextdv1.ExplainCallRequest{SessionId: "s", Text: strings.Repeat("x", 4097)}, badInput{code: codes.InvalidArgument, reason: invalid, field: "text"}},
		} {
			t.Run(name, func(t *testing.T) {
				checkRefusal(t, explaining(want.req)(t.Context(), a), want.bad)
			})
		}
	})
}

func explaining(req *contextdv1.ExplainCallRequest) func(context.Context, *api) error {
	return func(ctx context.Context, a *api) error {
		_, err := a.ExplainCall(ctx, req)
		return err
	}
}
