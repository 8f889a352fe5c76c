package demo

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// tampering is a daemon whose answers are changed on the way, which the checks must notice.
type tampering struct {
	contextdv1.ContextServiceClient
	header   func(*contextdv1.ContextHeader)
	chunk    func(*contextdv1.MessageChunk)
	replayed func(*contextdv1.ReplayProjectionResponse)
	resolved func(*contextdv1.ResolvePointerResponse)
}

func (c *tampering) AssembleContext(ctx context.Context, req *contextdv1.AssembleContextRequest, opts ...grpc.CallOption) (grpc.ServerStreamingClient[contextdv1.AssembleContextResponse], error) {
	stream, err := c.ContextServiceClient.AssembleContext(ctx, req, opts...)
	if req.GetPreview() {
		return stream, err // the unreduced context is not changed
	}
	return tamperingStream{stream, c}, err
}

func (c *tampering) ReplayProjection(ctx context.Context, req *contextdv1.ReplayProjectionRequest, opts ...grpc.CallOption) (*contextdv1.ReplayProjectionResponse, error) {
	resp, err := c.ContextServiceClient.ReplayProjection(ctx, req, opts...)
	if err == nil && c.replayed != nil {
		c.replayed(resp)
	}
	return resp, err
}

func (c *tampering) ResolvePointer(ctx context.Context, req *contextdv1.ResolvePointerRequest, opts ...grpc.CallOption) (*contextdv1.ResolvePointerResponse, error) {
	resp, err := c.ContextServiceClient.ResolvePointer(ctx, req, opts...)
	if err == nil && c.resolved != nil {
		c.resolved(resp)
	}
	return resp, err
}

type tamperingStream struct {
	grpc.ServerStreamingClient[contextdv1.AssembleContextResponse]
	c *tampering
}

func (s tamperingStream) Recv() (*contextdv1.AssembleContextResponse, error) {
	resp, err := s.ServerStreamingClient.Recv()
	if h := resp.GetHeader(); h != nil && s.c.header != nil {
		s.c.header(h)
	}
	if chunk := resp.GetChunk(); chunk != nil && s.c.chunk != nil {
		s.c.chunk(chunk)
	}
	return resp, err
}

func replaySmall(t *testing.T, c *tampering) *Totals {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "small.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	events, err := readSession(f)
	if err != nil {
		t.Fatal(err)
	}
	d, err := start(t.Context(), t.TempDir(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
	}()
	c.ContextServiceClient = contextdv1.NewContextServiceClient(d.conn)
	watch, err := newWatch(t.Context(), contextdv1.NewCompactionServiceClient(d.conn))
	if err != nil {
		t.Fatal(err)
	}
	defer watch.close()
	r := &replay{api: c, watch: watch, budget: &contextdv1.Budget{MaxTokens: 1800}, report: func(*Turn) error { return nil }}
	totals, err := r.run(t.Context(), events)
	if err != nil {
		t.Fatal(err)
	}
	return totals
}

// withoutResult drops the messages that hold a tool result.
func withoutResult(c *contextdv1.MessageChunk) {
	c.Messages = slices.DeleteFunc(c.Messages, func(m *contextdv1.RenderedMessage) bool {
		return m.GetMessage().GetRole() == contextdv1.Role_ROLE_TOOL
	})
}

// TestCheckAnchor: the system prompt and the first human message are the anchor; messages that a harness
// injected between them are not.
func TestCheckAnchor(t *testing.T) {
	r := &replay{}
	var all []*contextdv1.RenderedMessage
	said := func(role contextdv1.Role, injected string) {
		r.appended = append(r.appended, &contextdv1.Event{Labels: map[string]string{"harness.injected": injected}})
		all = append(all, &contextdv1.RenderedMessage{SourceSeqs: []uint64{uint64(len(all) + 1)}, Message: &contextdv1.Message{Role: role}})
	}
	said(contextdv1.Role_ROLE_SYSTEM, "")
	said(contextdv1.Role_ROLE_SYSTEM, "true")
	said(contextdv1.Role_ROLE_USER, "true")
	said(contextdv1.Role_ROLE_SYSTEM, "true")
	said(contextdv1.Role_ROLE_USER, "")
	said(contextdv1.Role_ROLE_ASSISTANT, "")
	for i, anchor := range []bool{true, true, false, false, true, false} {
		if err := r.checkAnchor(slices.Delete(slices.Clone(all), i, i+1), all); (err != nil) != anchor {
			t.Errorf("without message %d: %v", i, err)
		}
	}
}

func TestChecksSeeWhatIsWrong(t *testing.T) {
	if totals := replaySmall(t, &tampering{}); len(totals.Problems) > 0 {
		t.Fatalf("problems where nothing was changed: %q", totals.Problems)
	}
	tests := map[string]struct {
		daemon tampering
		want   string
	}{
		"a byte of a message": {tampering{chunk: func(c *contextdv1.MessageChunk) {
			m := c.GetMessages()[0]
			m.Json = slices.Clone(m.GetJson())
			m.Json[len(m.Json)/2] ^= 1
		}}, "the messages hash to"},
		"a missing message": {tampering{chunk: withoutResult}, "has no result"},
		"an anchor": {tampering{chunk: func(c *contextdv1.MessageChunk) {
			for _, m := range c.GetMessages() {
				if m.GetMessage().GetRole() == contextdv1.Role_ROLE_SYSTEM {
					m.GetMessage().GetBlocks()[0].GetText().Text += "!"
				}
			}
		}}, "of the anchor was changed"},
		"a call that no ledger names": {tampering{chunk: func(c *contextdv1.MessageChunk) {
			for _, m := range c.GetMessages() {
				if m.GetOrigin() == contextdv1.Origin_ORIGIN_SUMMARY {
					m.GetMessage().GetBlocks()[0].GetText().Text = "[contextd: earlier messages left]"
				}
			}
		}}, "calls are visible"},
		"too many tokens": {tampering{header: func(h *contextdv1.ContextHeader) {
			h.Budget.ProjectedTokens = h.GetBudget().GetTargetTokens() + 1
		}}, "are over the target"},
		"a rewrite that is not admitted": {tampering{header: func(h *contextdv1.ContextHeader) {
			if h.Cache != nil {
				h.Cache.BrokenBy = ""
			}
		}}, `the daemon says that ""`},
		"a projection that is rebuilt differently": {tampering{replayed: func(r *contextdv1.ReplayProjectionResponse) { r.Same = false }}, "was not rebuilt"},
		"another body of a pointer": {tampering{resolved: func(r *contextdv1.ResolvePointerResponse) {
			r.Block = &contextdv1.Block{}
		}}, "does not give back what was appended"},
		"another event of a pointer": {tampering{resolved: func(r *contextdv1.ResolvePointerResponse) {
			r.Event = proto.CloneOf(r.GetEvent())
			r.Event.Seq = 1 << 40
		}}, "leads to event"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			totals := replaySmall(t, &tt.daemon)
			if !slices.ContainsFunc(totals.Problems, func(p string) bool { return strings.Contains(p, tt.want) }) {
				t.Errorf("nobody said %q: %q", tt.want, totals.Problems)
			}
		})
	}
}
