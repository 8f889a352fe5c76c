package server_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/contextd/contextd/cmd/contextd/internal/gauges"
	"github.com/contextd/contextd/cmd/contextd/internal/server"
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// stopped is a server whose clock is stopped: times distinguish nothing.
func stopped(o *server.Options) {
	models, err := budget.NewModels()
	if err != nil {
		panic(err)
	}
	o.Clock = func() time.Time { return epoch }
	o.Engine = assemble.New(o.Store, assemble.Options{Gauges: gauges.Open, Models: models, Clock: o.Clock, CacheSessions: 8})
}

// life is one session of an id from its first event on: everything that a runtime asks
// for in it, under each projection policy. It returns all answers.
func (a *api) life(t *testing.T, about string) []proto.Message {
	t.Helper()
	ctx := t.Context()
	var answers []proto.Message
	add := func(m proto.Message, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, m)
	}
	// Ids are the client's own, so that both lives may have the same.
	say := func(id string, e *contextdv1.Event) *contextdv1.Event { e.EventId = id; return e }
	tight := &contextdv1.Budget{MaxTokens: 1500, SafetyMargin: proto.Float64(0), Tokenizer: "heuristic"}
	add(a.AppendEvents(ctx, &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{
		say("e1", message(contextdv1.Role_ROLE_SYSTEM, text("You look after "+about+"."))),
		say("e2", user("Read all about "+about+".")),
		say("e3", &contextdv1.Event{Kind: &contextdv1.Event_Reminder{Reminder: &contextdv1.Reminder{Body: "Mind the " + about + ".", TtlTurns: proto.Uint32(9)}}}),
	}}))
	for i := range 12 {
		id := fmt.Sprintf("call %d", i) // no provider takes it as it is
		add(a.AppendEvents(ctx, &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{
			say(fmt.Sprintf("a%d", i), message(contextdv1.Role_ROLE_ASSISTANT, call(id, "read_file", fmt.Sprintf(`{"path": "%s/%d.go"}`, about, i)))),
			say(fmt.Sprintf("r%d", i), message(contextdv1.Role_ROLE_TOOL, result(id, text(strings.Repeat(about+" is in line ", 40))))),
		}}))
	}
	for _, policy := range []string{"raw", "clean_tool_repair", "squash_failed_calls", "reachability_gc", "harness_view"} {
		for _, format := range []contextdv1.Format{contextdv1.Format_FORMAT_UNSPECIFIED, contextdv1.Format_FORMAT_ANTHROPIC} {
			got, err := a.assemble(t, &contextdv1.AssembleContextRequest{
				SessionId: "s", Budget: tight, Format: format, IdempotencyKey: policy + format.String(),
				Policy: &contextdv1.Policy{Projection: &contextdv1.ProjectionPolicy{Policy: policy}},
			})
			add(got.header, err)
			for _, m := range got.messages {
				answers = append(answers, m)
			}
			add(a.RecordModelCall(ctx, &contextdv1.RecordModelCallRequest{
				SessionId: "s", ProjectionId: got.header.GetProjectionId(), InputTokens: got.header.GetBudget().GetProjectedTokens() * uint64(10+len(about)) / 10,
			}))
		}
	}
	add(a.AppendEvents(ctx, &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{say("last", user("And now?"))}}))
	add(a.ListProjections(ctx, &contextdv1.ListProjectionsRequest{SessionId: "s"}))
	add(a.ExplainCall(ctx, &contextdv1.ExplainCallRequest{SessionId: "s", Text: about}))
	add(a.GetSession(ctx, &contextdv1.GetSessionRequest{SessionId: "s"}))
	events, err := a.ReadEvents(ctx, &contextdv1.ReadEventsRequest{SessionId: "s"})
	for err == nil {
		var m *contextdv1.ReadEventsResponse
		if m, err = events.Recv(); err == nil {
			answers = append(answers, m)
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return answers
}

// TestNothingOutlivesASession: a session that has the id of one that was deleted is
// answered like one that nobody had before, though the ids of events and calls, the keys
// and the time are the same, except what distinguishes the one from the other.
func TestNothingOutlivesASession(t *testing.T) {
	ignoreChain := protocmp.IgnoreFields(&contextdv1.ReadEventsResponse{}, "chain_head", "incarnation")
	ignoreHead := protocmp.IgnoreFields(&contextdv1.Session{}, "chain_head", "incarnation")
	ignoreMark := protocmp.IgnoreFields(&contextdv1.LogMark{}, "incarnation", "chain_head")
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		want := serve(t, open(t), stopped).life(t, "boats")
		a := serve(t, open(t), stopped)
		a.life(t, "submarines")
		if _, err := a.DeleteSession(t.Context(), &contextdv1.DeleteSessionRequest{SessionId: "s"}); err != nil {
			t.Fatal(err)
		}
		got := a.life(t, "boats")
		if len(got) != len(want) {
			t.Fatalf("%d answers; a fresh server gives %d", len(got), len(want))
		}
		for i := range got {
			if diff := cmp.Diff(want[i], got[i], protocmp.Transform(), ignoreChain, ignoreHead, ignoreMark); diff != "" {
				t.Errorf("answer %d (-fresh +reused):\n%s", i, diff)
			}
			if said := protojson.Format(got[i]); strings.Contains(said, "submarine") {
				t.Errorf("answer %d tells of the session before: %s", i, said)
			}
		}
	})
}
