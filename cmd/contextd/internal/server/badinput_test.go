package server_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// badInput is a request that must be refused with this answer.
type badInput struct {
	send   func(ctx context.Context, a *api) error
	code   codes.Code
	reason string
	// field is named in the answer; empty if no field is at fault.
	field string
}

const invalid = apierr.ReasonInvalidField

func badInputs() map[string]badInput {
	assistant := contextdv1.Role_ROLE_ASSISTANT
	tool := contextdv1.Role_ROLE_TOOL
	huge := strings.Repeat("x", 17<<20)
	return map[string]badInput{
		"no events":             {appending(&contextdv1.AppendEventsRequest{}), codes.InvalidArgument, invalid, "events"},
		"an event without kind": {event(&contextdv1.Event{}), codes.InvalidArgument, invalid, "events[0].kind"},
		"an empty message":      {event(message(assistant)), codes.InvalidArgument, invalid, "events[0].message.blocks"},
		"a message of no text":  {event(user("")), codes.InvalidArgument, invalid, "events[0].message.blocks"},
		"no role":               {event(message(0, text("x"))), codes.InvalidArgument, invalid, "events[0].message.role"},
		"an unknown role":       {event(message(77, text("x"))), codes.InvalidArgument, invalid, "events[0].message.role"},
		"no session_id": {func(ctx context.Context, a *api) error {
			_, err := a.AppendEvents(ctx, &contextdv1.AppendEventsRequest{Events: conversation()})
			return err
		}, codes.InvalidArgument, invalid, "session_id"},
		"a session_id with ..": {appending(&contextdv1.AppendEventsRequest{SessionId: "a/../b", Events: conversation()}), codes.InvalidArgument, invalid, "session_id"},
		"NUL in session_id":    {appending(&contextdv1.AppendEventsRequest{SessionId: "a\x00", Events: conversation()}), codes.InvalidArgument, invalid, "session_id"},
		"NUL in event_id":      {event(&contextdv1.Event{EventId: "a\x00b", Kind: user("x").GetKind()}), codes.InvalidArgument, invalid, "events[0].event_id"},
		"NUL in call_id":       {event(message(assistant, call("c\x00", "ls", "{}"))), codes.InvalidArgument, invalid, "events[0].message.blocks[0].tool_call.call_id"},
		"NUL in a tool's name": {event(message(assistant, call("c", "l\x00s", "{}"))), codes.InvalidArgument, invalid, "events[0].message.blocks[0].tool_call.name"},
		"arguments that are no text": {
			event(message(assistant, call("c9", "ls", "{\"path\": \xff"))),
			codes.InvalidArgument, invalid, "events[0].message.blocks[0].tool_call.arguments_json",
		},
		"a provider block that is no JSON": {
			event(message(assistant, &contextdv1.Block{Kind: &contextdv1.Block_Provider{Provider: &contextdv1.ProviderBlock{Provider: "p", Json: []byte("x")}}})),
			codes.InvalidArgument, invalid, "events[0].message.blocks[0].provider.json",
		},
		"a result without a call": {
			event(message(tool, result("nobody", text("x")))),
			codes.InvalidArgument, invalid, "events[0].message.blocks[0].tool_result.call_id",
		},
		"a result before its call": {
			appending(&contextdv1.AppendEventsRequest{Events: []*contextdv1.Event{message(tool, result("c9", text("x"))), message(assistant, call("c9", "ls", ""))}}),
			codes.InvalidArgument, invalid, "events[0].message.blocks[0].tool_result.call_id",
		},
		"a second result": {
			event(message(tool, result("c1", text("x")))),
			codes.InvalidArgument, invalid, "events[0].message.blocks[0].tool_result.call_id",
		},
		"a call by the user":          {event(message(contextdv1.Role_ROLE_USER, call("c9", "ls", ""))), codes.InvalidArgument, invalid, "events[0].message.blocks[0].tool_call"},
		"text in a tool message":      {event(message(tool, text("x"))), codes.InvalidArgument, invalid, "events[0].message.blocks[0].tool_result"},
		"one call_id twice":           {event(message(assistant, call("c9", "ls", ""), call("c9", "ls", ""))), codes.InvalidArgument, invalid, "events[0].message.blocks[1].tool_call.call_id"},
		"a result within a result":    {event(message(tool, result("c1", result("c1")))), codes.InvalidArgument, invalid, "events[0].message.blocks[0].tool_result.content"},
		"the second of two events":    {appending(&contextdv1.AppendEventsRequest{Events: []*contextdv1.Event{user("fine"), message(assistant, call("c9", "ls", "\xff"))}}), codes.InvalidArgument, invalid, "events[1].message.blocks[0].tool_call.arguments_json"},
		"a reminder that never lives": {event(&contextdv1.Event{Kind: &contextdv1.Event_Reminder{Reminder: &contextdv1.Reminder{Body: "b", TtlTurns: proto.Uint32(0)}}}), codes.InvalidArgument, invalid, "events[0].reminder.ttl_turns"},
		"invalid UTF-8 in text":       {raw(user("PLACEHOLDER")), codes.InvalidArgument, invalid, "events[0].message.blocks[0].text.text"},
		"invalid UTF-8 in an id":      {raw(user("fine"), &contextdv1.Event{EventId: "PLACEHOLDER", Kind: user("x").GetKind()}), codes.InvalidArgument, invalid, "events[1].event_id"},
		"invalid UTF-8 in a label":    {raw(&contextdv1.Event{Labels: map[string]string{"k": "PLACEHOLDER"}, Kind: user("x").GetKind()}), codes.InvalidArgument, invalid, `events[0].labels["k"]`},
		"bytes that are no message": {
			func(ctx context.Context, a *api) error { return a.invokeRaw(ctx, []byte("\xff\xff\xff")) },
			codes.InvalidArgument, invalid, "AppendEventsRequest",
		},
		"an event of 17 MiB": {event(user(huge)), codes.ResourceExhausted, apierr.ReasonLimit, "events[0]"},
		"a batch of 34 MiB": {
			appending(&contextdv1.AppendEventsRequest{Events: []*contextdv1.Event{user(huge[:12<<20]), user(huge[:12<<20]), user(huge[:10<<20])}}),
			codes.ResourceExhausted, apierr.ReasonLimit, "events",
		},
		"an event_id used before": {
			event(&contextdv1.Event{EventId: "first", Kind: user("other").GetKind()}),
			codes.AlreadyExists, apierr.ReasonEventIDConflict, "events[0].event_id",
		},
		"an event_id twice in a batch": {
			appending(&contextdv1.AppendEventsRequest{Events: []*contextdv1.Event{
				{EventId: "new", Kind: user("one").GetKind()}, {EventId: "new", Kind: user("other").GetKind()},
			}}),
			codes.AlreadyExists, apierr.ReasonEventIDConflict, "events[1].event_id",
		},
		"another head":                 {appending(&contextdv1.AppendEventsRequest{Events: []*contextdv1.Event{user("x")}, ExpectedHead: proto.Uint64(3)}), codes.Aborted, apierr.ReasonHeadMismatch, "expected_head"},
		"a session that must be empty": {appending(&contextdv1.AppendEventsRequest{Events: []*contextdv1.Event{user("x")}, ExpectedHead: proto.Uint64(0)}), codes.Aborted, apierr.ReasonHeadMismatch, "expected_head"},

		"assemble an unknown session": {assembling(func(r *contextdv1.AssembleContextRequest) { r.SessionId = "nobody" }), codes.NotFound, apierr.ReasonSessionNotFound, ""},
		"assemble the future":         {assembling(func(r *contextdv1.AssembleContextRequest) { r.AsOfSeq = proto.Uint64(99) }), codes.InvalidArgument, invalid, "as_of_seq"},
		"an unknown format":           {assembling(func(r *contextdv1.AssembleContextRequest) { r.Format = 99 }), codes.InvalidArgument, invalid, "format"},
		"have without a hash":         {assembling(func(r *contextdv1.AssembleContextRequest) { r.Have = &contextdv1.Have{MessageCount: 1} }), codes.InvalidArgument, invalid, "have.prefix_hash"},
		"have with a strange hash": {
			assembling(func(r *contextdv1.AssembleContextRequest) {
				r.Have = &contextdv1.Have{MessageCount: 1, PrefixHash: "md5:0"}
			}), codes.InvalidArgument, invalid, "have.prefix_hash",
		},
		"two injections of one name": {
			assembling(func(r *contextdv1.AssembleContextRequest) {
				in := &contextdv1.Injection{Name: "n", Blocks: []*contextdv1.Block{text("x")}}
				r.Injections = []*contextdv1.Injection{in, in}
			}), codes.InvalidArgument, invalid, "injections",
		},
		"an injection over its reserve": {
			assembling(func(r *contextdv1.AssembleContextRequest) {
				r.Injections = []*contextdv1.Injection{{Name: "n", Blocks: []*contextdv1.Block{text(strings.Repeat("word ", 100))}, ReserveTokens: 10}}
			}), codes.FailedPrecondition, apierr.ReasonInjectionOversize, "",
		},
		"a negative margin":          {withBudget(&contextdv1.Budget{SafetyMargin: proto.Float64(-0.1)}), codes.InvalidArgument, invalid, "budget.safety_margin"},
		"a margin of everything":     {withBudget(&contextdv1.Budget{SafetyMargin: proto.Float64(1)}), codes.InvalidArgument, invalid, "budget.safety_margin"},
		"a margin that is no number": {withBudget(&contextdv1.Budget{SafetyMargin: proto.Float64(math.NaN())}), codes.InvalidArgument, invalid, "budget.safety_margin"},
		"an endless margin":          {withBudget(&contextdv1.Budget{SafetyMargin: proto.Float64(math.Inf(-1))}), codes.InvalidArgument, invalid, "budget.safety_margin"},
		"minus one token":            {withBudget(&contextdv1.Budget{MaxTokens: math.MaxUint64}), codes.InvalidArgument, invalid, "budget.max_tokens"},
		"minus one for the output":   {withBudget(&contextdv1.Budget{MaxTokens: 8000, OutputReserve: math.MaxUint64}), codes.InvalidArgument, invalid, "budget.output_reserve"},
		"reserves of everything":     {withBudget(&contextdv1.Budget{MaxTokens: 8000, OutputReserve: 8000}), codes.InvalidArgument, invalid, "budget.max_tokens"},
		"reserves of the window":     {withBudget(&contextdv1.Budget{Model: "gpt-4o", OutputReserve: 900_000_000}), codes.InvalidArgument, invalid, "budget.output_reserve"},
		"red below yellow":           {withBudget(&contextdv1.Budget{YellowAt: 0.9, RedAt: 0.1}), codes.InvalidArgument, invalid, "budget.red_at"},
		"red below the default":      {withBudget(&contextdv1.Budget{RedAt: 0.1}), codes.InvalidArgument, invalid, "budget.red_at"},
		"a tier that is none":        {withBudget(&contextdv1.Budget{TierCaps: map[string]float64{"soup": 0.5}}), codes.InvalidArgument, invalid, `budget.tier_caps["soup"]`},
		"yellow above red's default": {withBudget(&contextdv1.Budget{YellowAt: 0.95}), codes.InvalidArgument, invalid, "budget.red_at"},
		"a cap of nothing":           {withBudget(&contextdv1.Budget{TierCaps: map[string]float64{"dialogue": 0}}), codes.InvalidArgument, invalid, `budget.tier_caps["dialogue"]`},
		"a tokenizer that is none":   {withBudget(&contextdv1.Budget{Tokenizer: "abacus"}), codes.InvalidArgument, invalid, "budget.tokenizer"},
		"a budget that nothing fits": {withBudget(&contextdv1.Budget{MaxTokens: 5}), codes.FailedPrecondition, apierr.ReasonBudgetExceeded, ""},
		"a policy that is none":      {withPolicy(&contextdv1.Policy{Name: "soup"}), codes.InvalidArgument, invalid, "policy.name"},
		"a projection that is none":  {withPolicy(&contextdv1.Policy{Projection: &contextdv1.ProjectionPolicy{Policy: "soup"}}), codes.InvalidArgument, invalid, "policy.projection.policy"},
		"an expression that is none": {withPolicy(&contextdv1.Policy{Projection: &contextdv1.ProjectionPolicy{Policy: "custom", Expression: "age <"}}), codes.InvalidArgument, invalid, "policy.projection.expression"},
		"an option of another":       {withPolicy(&contextdv1.Policy{Projection: &contextdv1.ProjectionPolicy{Policy: "raw", Expression: "true"}}), codes.InvalidArgument, invalid, "policy.projection.expression"},
		"a broken glob":              {withPolicy(&contextdv1.Policy{ToolResults: &contextdv1.ToolResultRetention{ByTool: map[string]*contextdv1.Retention{"[": {}}}}), codes.InvalidArgument, invalid, "policy.tool_results.by_tool"},
		"a summarizer that is none":  {withPolicy(&contextdv1.Policy{Summarization: &contextdv1.Summarization{Summarizer: "s"}}), codes.InvalidArgument, invalid, "policy.summarization.summarizer"},
		"a share above one":          {withPolicy(&contextdv1.Policy{Summarization: &contextdv1.Summarization{LedgerShare: 1.5}}), codes.InvalidArgument, invalid, "policy.summarization.ledger_share"},
		"head and tail above the limit": {
			withPolicy(&contextdv1.Policy{Clipping: &contextdv1.ResultClipping{MaxTokens: 10, HeadTokens: 9, TailTokens: 9}}),
			codes.InvalidArgument, invalid, "policy.clipping.max_tokens",
		},
		"a collapse above its start": {
			withPolicy(&contextdv1.Policy{Summarization: &contextdv1.Summarization{StartAt: 0.4, CollapseTo: 0.5}}),
			codes.InvalidArgument, invalid, "policy.summarization.collapse_to",
		},

		"read an unknown session": {reading(&contextdv1.ReadEventsRequest{SessionId: "nobody"}), codes.NotFound, apierr.ReasonSessionNotFound, ""},
		"read backwards":          {reading(&contextdv1.ReadEventsRequest{SessionId: "s", FromSeq: 3, ToSeq: 2}), codes.InvalidArgument, invalid, "to_seq"},
		"create what exists":      {creating(&contextdv1.CreateSessionRequest{SessionId: "s"}), codes.AlreadyExists, apierr.ReasonSessionExists, ""},
		"create with a tokenizer that is none": {
			creating(&contextdv1.CreateSessionRequest{SessionId: "n", Budget: &contextdv1.Budget{Tokenizer: "abacus"}}),
			codes.InvalidArgument, invalid, "budget.tokenizer",
		},
		"create with a policy that is none": {
			creating(&contextdv1.CreateSessionRequest{SessionId: "n", Policy: &contextdv1.Policy{Name: "soup"}}),
			codes.InvalidArgument, invalid, "policy.name",
		},
		"create with NUL in a label": {
			creating(&contextdv1.CreateSessionRequest{SessionId: "n", Labels: map[string]string{"a": "\x00"}}),
			codes.InvalidArgument, invalid, `labels["a"]`,
		},
		"get an unknown session": {func(ctx context.Context, a *api) error {
			_, err := a.GetSession(ctx, &contextdv1.GetSessionRequest{SessionId: "nobody"})
			return err
		}, codes.NotFound, apierr.ReasonSessionNotFound, ""},
		"delete an unknown session": {func(ctx context.Context, a *api) error {
			_, err := a.DeleteSession(ctx, &contextdv1.DeleteSessionRequest{SessionId: "nobody"})
			return err
		}, codes.NotFound, apierr.ReasonSessionNotFound, ""},
		"fork an unknown session": {forking("nobody", "n", 0), codes.NotFound, apierr.ReasonSessionNotFound, ""},
		"fork the future":         {forking("s", "n", 99), codes.InvalidArgument, invalid, "at_seq"},
		"fork onto another":       {forking("s", "t", 1), codes.AlreadyExists, apierr.ReasonSessionExists, ""},
		"fork onto itself":        {forking("s", "s", 1), codes.InvalidArgument, invalid, "new_session_id"},
		"a page token made up": {func(ctx context.Context, a *api) error {
			_, err := a.ListSessions(ctx, &contextdv1.ListSessionsRequest{PageToken: "%"})
			return err
		}, codes.InvalidArgument, invalid, "page_token"},
		"a page of a million": {func(ctx context.Context, a *api) error {
			_, err := a.ListSessions(ctx, &contextdv1.ListSessionsRequest{PageSize: 1e6})
			return err
		}, codes.InvalidArgument, invalid, "page_size"},
		"projections of nobody": {func(ctx context.Context, a *api) error {
			_, err := a.ListProjections(ctx, &contextdv1.ListProjectionsRequest{SessionId: "nobody"})
			return err
		}, codes.NotFound, apierr.ReasonSessionNotFound, ""},
		"replay what was not recorded": {
			func(ctx context.Context, a *api) error {
				_, err := a.ReplayProjection(ctx, &contextdv1.ReplayProjectionRequest{SessionId: "s", ProjectionId: "p1-0001"})
				return err
			}, codes.NotFound, apierr.ReasonNotFound, "",
		},
		"a pointer that is none":                {resolving("soup"), codes.InvalidArgument, invalid, "pointer"},
		"a pointer to nowhere":                  {resolving("ctx:99.0"), codes.NotFound, apierr.ReasonNotFound, ""},
		"a pointer behind the block":            {resolving("ctx:1.9"), codes.NotFound, apierr.ReasonNotFound, ""},
		"count by an abacus":                    {counting(&contextdv1.CountTokensRequest{Text: "x", Tokenizer: "abacus"}), codes.InvalidArgument, invalid, "tokenizer"},
		"count tools that are no list":          {counting(&contextdv1.CountTokensRequest{ToolsJson: []byte(`{}`)}), codes.InvalidArgument, invalid, "tools_json"},
		"count for no such format":              {counting(&contextdv1.CountTokensRequest{Format: 99}), codes.InvalidArgument, invalid, "format"},
		"count text and message":                {counting(&contextdv1.CountTokensRequest{Text: "x", Message: user("x").GetMessage()}), codes.InvalidArgument, invalid, "text"},
		"count a broken message":                {counting(&contextdv1.CountTokensRequest{Message: message(assistant, call("c", "n", "\xff")).GetMessage()}), codes.InvalidArgument, invalid, "message.blocks[0].tool_call.arguments_json"},
		"project nothing":                       {projecting(&contextdv1.ProjectTranscriptRequest{}), codes.InvalidArgument, invalid, "events"},
		"project in the wrong order":            {projecting(&contextdv1.ProjectTranscriptRequest{Events: conversation()[3:]}), codes.InvalidArgument, invalid, "events[0].message.blocks[0].tool_result.call_id"},
		"record a call of nobody":               {recording(&contextdv1.RecordModelCallRequest{SessionId: "nobody"}), codes.NotFound, apierr.ReasonSessionNotFound, ""},
		"record a call without a session":       {recording(&contextdv1.RecordModelCallRequest{}), codes.InvalidArgument, invalid, "session_id"},
		"record a call from no such projection": {recording(&contextdv1.RecordModelCallRequest{SessionId: "s", ProjectionId: "p4-0001"}), codes.NotFound, apierr.ReasonNotFound, ""},
		"record a call from a soup":             {recording(&contextdv1.RecordModelCallRequest{SessionId: "s", ProjectionId: "soup"}), codes.NotFound, apierr.ReasonNotFound, ""},
		"record more cached than sent": {
			recording(&contextdv1.RecordModelCallRequest{SessionId: "s", InputTokens: 5, CacheReadTokens: 5, CacheWriteTokens: 1}),
			codes.InvalidArgument, invalid, "input_tokens",
		},
		"record an endless prompt":     {recording(&contextdv1.RecordModelCallRequest{SessionId: "s", InputTokens: 1e9 + 1}), codes.InvalidArgument, invalid, "input_tokens"},
		"record NUL in a model":        {recording(&contextdv1.RecordModelCallRequest{SessionId: "s", Model: "m\x00"}), codes.InvalidArgument, invalid, "model"},
		"compact nobody":               {compacting(&contextdv1.CompactSessionRequest{SessionId: "nobody"}), codes.NotFound, apierr.ReasonSessionNotFound, ""},
		"compact in a mode of no name": {compacting(&contextdv1.CompactSessionRequest{SessionId: "s", Mode: "soup"}), codes.InvalidArgument, invalid, "mode"},
		"compact by no strategy":       {compacting(&contextdv1.CompactSessionRequest{SessionId: "s", Strategy: "soup"}), codes.InvalidArgument, invalid, "strategy"},
		"compact by no instructions":   {compacting(&contextdv1.CompactSessionRequest{SessionId: "s", InstructionsMode: "replace"}), codes.InvalidArgument, invalid, "instructions"},
		"compact and wait": {compacting(&contextdv1.CompactSessionRequest{
			SessionId: "s", Policy: &contextdv1.Policy{Summarization: &contextdv1.Summarization{Wait: durationpb.New(time.Second)}},
		}), codes.InvalidArgument, invalid, "policy.summarization.wait"},
		"import without a header": {importing("", "x"), codes.InvalidArgument, invalid, "header"},
		"import a soup":           {importing("soup", "x"), codes.InvalidArgument, invalid, "header.harness"},
		"import noise":            {importing("claude", "\x00\x01\x02"), codes.InvalidArgument, apierr.ReasonTranscript, "data"},
	}
}

// TestBadInput sends everything that is wrong to one daemon, which must answer
// as documented, keep its log as it was, and go on serving.
func TestBadInput(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		events := conversation()
		events[0].EventId = "first"
		for _, id := range []string{"s", "t"} {
			if _, err := a.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: id, Events: events}); err != nil {
				t.Fatal(err)
			}
		}
		before := a.read(t, "s")
		for name, bad := range badInputs() {
			t.Run(name, func(t *testing.T) {
				checkRefusal(t, bad.send(t.Context(), a), bad)
			})
		}
		after := a.read(t, "s")
		if !slices.EqualFunc(before, after, func(a, b *contextdv1.Event) bool { return proto.Equal(a, b) }) {
			t.Errorf("the log changed: %d events before, %d after", len(before), len(after))
		}
		sessions, err := a.ListSessions(t.Context(), &contextdv1.ListSessionsRequest{})
		if err != nil || len(sessions.GetSessions()) != 2 {
			t.Errorf("there are sessions %v, %v; want s and t alone", sessions, err)
		}
		if _, err := a.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{user("still there?")}}); err != nil {
			t.Errorf("append after all that: %v", err)
		}
	})
}

func checkRefusal(t *testing.T, err error, want badInput) {
	t.Helper()
	st, ok := status.FromError(err)
	if !ok || st.Code() != want.code {
		t.Fatalf("got %v; want %v", err, want.code)
	}
	var info *errdetails.ErrorInfo
	var fields []string
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			info = d
		case *errdetails.BadRequest:
			for _, v := range d.GetFieldViolations() {
				fields = append(fields, v.GetField())
				if v.GetDescription() == "" {
					t.Errorf("%s is at fault for no reason", v.GetField())
				}
			}
		}
	}
	if info.GetReason() != want.reason || info.GetDomain() != apierr.Domain {
		t.Errorf("reason is %q of %q; want %q", info.GetReason(), info.GetDomain(), want.reason)
	}
	if want.field == "" && len(fields) > 0 || want.field != "" && !slices.Contains(fields, want.field) {
		t.Errorf("fields at fault are %q; want %q (%s)", fields, want.field, st.Message())
	}
	if st.Message() == "" {
		t.Error("no message")
	}
}

// read returns the whole log of a session.
func (a *api) read(t *testing.T, id string) []*contextdv1.Event {
	t.Helper()
	stream, err := a.ReadEvents(t.Context(), &contextdv1.ReadEventsRequest{SessionId: id})
	if err != nil {
		t.Fatal(err)
	}
	parts, err := received(stream.Recv)
	if err != nil {
		t.Fatal(err)
	}
	var out []*contextdv1.Event
	for _, resp := range parts {
		out = append(out, resp.GetEvents()...)
	}
	return out
}

func compacting(req *contextdv1.CompactSessionRequest) func(context.Context, *api) error {
	return func(ctx context.Context, a *api) error {
		_, err := a.compaction.CompactSession(ctx, req)
		return err
	}
}
