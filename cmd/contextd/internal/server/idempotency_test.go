package server_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// keyed is a request with everything that its key covers.
func keyed() *contextdv1.AssembleContextRequest {
	return &contextdv1.AssembleContextRequest{
		SessionId: "s", AsOfSeq: proto.Uint64(4), IdempotencyKey: "k", Format: contextdv1.Format_FORMAT_ANTHROPIC,
		Budget: &contextdv1.Budget{MaxTokens: 9000, InjectionReserve: 500, TierCaps: map[string]float64{"tool_results": 0.5, "dialogue": 0.9, "summary": 0.2}},
		Policy: &contextdv1.Policy{ToolResults: &contextdv1.ToolResultRetention{ByTool: map[string]*contextdv1.Retention{
			"a": {MinTokens: 1}, "b": {MinTokens: 2}, "c": {MinTokens: 3},
		}}},
		Injections: []*contextdv1.Injection{{Name: "now", Blocks: []*contextdv1.Block{text("noon")}}},
	}
}

// TestAKeyStandsForOneRequest: the same request with a key has the same projection, also
// when the log has grown and after a restart; any other with the key is refused.
func TestAKeyStandsForOneRequest(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		store := open(t)
		a := serve(t, unclosed{store})
		a.append(t, "s", conversation()...)
		first, err := a.assemble(t, keyed())
		if err != nil {
			t.Fatal(err)
		}
		a.append(t, "s", user("more"))
		a = serve(t, store)
		for name, change := range map[string]func(*contextdv1.AssembleContextRequest){
			"nothing": func(*contextdv1.AssembleContextRequest) {},
			"have": func(r *contextdv1.AssembleContextRequest) {
				r.Have = &contextdv1.Have{MessageCount: 1, PrefixHash: hashOf(first.messages[:1])}
			},
			"brief":   func(r *contextdv1.AssembleContextRequest) { r.Brief = true },
			"preview": func(r *contextdv1.AssembleContextRequest) { r.Preview = true },
		} {
			req := keyed()
			change(req)
			got, err := a.assemble(t, req)
			if err != nil || got.header.GetProjectionId() != first.header.GetProjectionId() || got.header.GetContextHash() != first.header.GetContextHash() {
				t.Errorf("%s: %v, %v", name, got.header, err)
			}
		}
		changes := map[string]func(*contextdv1.AssembleContextRequest){
			"as_of_seq":            func(r *contextdv1.AssembleContextRequest) { r.AsOfSeq = proto.Uint64(3) },
			"as_of_seq, absent":    func(r *contextdv1.AssembleContextRequest) { r.AsOfSeq = nil },
			"budget":               func(r *contextdv1.AssembleContextRequest) { r.Budget.MaxTokens++ },
			"budget, absent":       func(r *contextdv1.AssembleContextRequest) { r.Budget = nil },
			"budget, another cap":  func(r *contextdv1.AssembleContextRequest) { r.Budget.TierCaps["dialogue"] = 0.8 },
			"policy":               func(r *contextdv1.AssembleContextRequest) { r.Policy.Duplicates = &contextdv1.DuplicateResults{} },
			"policy, another tool": func(r *contextdv1.AssembleContextRequest) { r.Policy.ToolResults.ByTool["c"].MinTokens = 4 },
			"format":               func(r *contextdv1.AssembleContextRequest) { r.Format = contextdv1.Format_FORMAT_OPENAI_CHAT },
			"injections":           func(r *contextdv1.AssembleContextRequest) { r.Injections[0].Blocks[0] = text("one") },
			"injections, absent":   func(r *contextdv1.AssembleContextRequest) { r.Injections = nil },
		}
		for name, change := range changes {
			req := keyed()
			change(req)
			_, err := a.assemble(t, req)
			checkRefusal(t, err, badInput{code: codes.AlreadyExists, reason: apierr.ReasonKeyConflict, field: "idempotency_key"})
			if t.Failed() {
				t.Fatalf("with another %s", name)
			}
		}
		if list, err := a.ListProjections(t.Context(), &contextdv1.ListProjectionsRequest{SessionId: "s"}); err != nil || len(list.GetProjections()) != 1 {
			t.Errorf("recorded are %v, %v", list.GetProjections(), err)
		}
		for range 20 { // maps have no order
			if _, err := a.assemble(t, keyed()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestEveryFieldIsDecidedOn: a field that is added to the request is either part of what a
// key covers or is named here.
func TestEveryFieldIsDecidedOn(t *testing.T) {
	left := map[protoreflect.Name]bool{"session_id": true, "idempotency_key": true, "have": true, "brief": true, "preview": true, "known": true, "message_form": true}
	part := map[protoreflect.Name]bool{"as_of_seq": true, "budget": true, "policy": true, "format": true, "injections": true}
	fields := (&contextdv1.AssembleContextRequest{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if name := fields.Get(i).Name(); left[name] == part[name] {
			t.Errorf("does an idempotency key stand for %s? see wire.RequestDigest", name)
		}
	}
}
