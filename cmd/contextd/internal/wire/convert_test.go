package wire_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/pointers"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func TestBudgetToDomain(t *testing.T) {
	daemon := &contextdv1.Budget{Tokenizer: "o200k_base", MaxTokens: 1}
	margin := 0.25
	tests := map[string]struct {
		chain []*contextdv1.Budget
		want  budget.Spec
	}{
		"nothing":      {nil, budget.Spec{}},
		"all nil":      {[]*contextdv1.Budget{nil, nil}, budget.Spec{}},
		"the daemon's": {[]*contextdv1.Budget{nil, nil, daemon}, budget.Spec{Tokenizer: "o200k_base", MaxTokens: 1}},
		"a request keeps the gauge": {
			[]*contextdv1.Budget{{MaxTokens: 9}, {Model: "m", MaxTokens: 2}, daemon},
			budget.Spec{Model: "m", MaxTokens: 9},
		},
		"a request brings its gauge": {
			[]*contextdv1.Budget{{Tokenizer: "heuristic"}, {Model: "m", MaxTokens: 2}, daemon},
			budget.Spec{Tokenizer: "heuristic"},
		},
		"everything": {
			[]*contextdv1.Budget{{
				Model: "m", MaxTokens: 1, OutputReserve: 2, InjectionReserve: 3, OverheadTokens: 4, SafetyMargin: &margin,
				YellowAt: 0.5, RedAt: 0.75, TierCaps: map[string]float64{"dialogue": 0.5}, Tokenizer: "t",
			}},
			budget.Spec{
				Model: "m", MaxTokens: 1, OutputReserve: 2, InjectionReserve: 3, OverheadTokens: 4, SafetyMargin: &margin,
				YellowAt: 0.5, RedAt: 0.75, TierCaps: map[budget.Tier]float64{budget.TierDialogue: 0.5}, Tokenizer: "t",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, wire.BudgetToDomain(test.chain...)); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSessionToProto(t *testing.T) {
	settings := wire.Settings{
		Policy: &contextdv1.Policy{Name: "lean"},
		Budget: &contextdv1.Budget{MaxTokens: 7},
	}
	encoded, err := settings.Encode()
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	got, err := wire.SessionToProto(eventlog.Session{
		ID: "s", Head: 4, Turns: 2, LogBytes: 99, CreateTime: at, UpdateTime: at.Add(time.Second),
		Labels: map[string]string{"a": "b"}, Settings: encoded, ParentID: "p", ForkSeq: 3, ChainHead: []byte{0xab, 1}, Incarnation: 0x2a,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &contextdv1.Session{
		SessionId: "s", HeadSeq: 4, Turns: 2, LogBytes: 99, CreateTime: timestamppb.New(at), UpdateTime: timestamppb.New(at.Add(time.Second)),
		Labels: map[string]string{"a": "b"}, Policy: settings.Policy, Budget: settings.Budget, ParentSessionId: "p", ForkSeq: 3, ChainHead: "sha256:ab01",
		Incarnation: "1886caf21c963206-2a",
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("session (-want +got):\n%s", diff)
	}
	if _, err := wire.SessionToProto(eventlog.Session{Settings: []byte{0xff}}); err == nil {
		t.Error("settings that are no message were accepted")
	}
	if b, err := (wire.Settings{}).Encode(); err != nil || b != nil {
		t.Errorf("no settings became %x, %v", b, err)
	}
}

func TestHeaderToProto(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := &assemble.Context{
		SessionID: "s", AsOf: 9, PrefixHash: "sha256:p", ContextHash: "sha256:c", MessageCount: 5, Skipped: 2,
		Projection: records.Projection{
			ID: "p9-0001", Policy: "raw", Reason: "r", Fingerprint: "f", PrefixHash: "sha256:p", AsOf: 9, Time: at,
			Kept: []eventlog.Range{{From: 1, To: 2}, {From: 9, To: 9}}, Redacted: []eventlog.Range{{From: 7, To: 8}},
			Dropped: []eventlog.Range{{From: 3, To: 6}}, ReclaimedTokens: -5, ReclaimedChars: 6,
			Steps: []reduce.Step{{Reducer: "x", TokensBefore: 10, TokensAfter: 8, Touched: 1, Note: "n"}},
		},
		Pointers: []pointers.Facts{{
			Pointer: records.Pointer{Seq: 7, Block: 1, Kind: reduce.Stubbed, Reducer: "x", Reason: "old", Reclaimed: 2},
			Name:    "ctx:7.1", CallID: "c", ToolName: "t", ContentHash: "sha256:h", Chars: 12,
		}},
		Budget: assemble.BudgetReport{
			State: budget.Yellow, Target: 100, Raw: 90, Projected: 80, Tiers: map[budget.Tier]uint64{budget.TierSystem: 3}, Tokenizer: "o200k_base",
			Calibration: 1.25,
		},
		Cache: assemble.CacheReport{StableMessages: 3, StableTokens: 30, BrokenBy: "x"},
	}
	want := &contextdv1.ContextHeader{
		SessionId: "s", AsOfSeq: 9, ProjectionId: "p9-0001", PrefixHash: "sha256:p", ContextHash: "sha256:c", MessageCount: 5, SkippedMessages: 2,
		Projection: &contextdv1.Projection{
			ProjectionId: "p9-0001", Policy: "raw", Reason: "r", PrefixHash: "sha256:p", AsOfSeq: 9,
			KeptSeqs: []uint64{1, 2, 7, 8, 9}, DroppedSeqs: []uint64{3, 4, 5, 6}, RedactedSeqs: []uint64{7, 8},
			KeptCount: 5, DroppedCount: 4, RedactedCount: 2, ReclaimedTokens: -5, ReclaimedChars: 6,
			RedactionPointers: []*contextdv1.RedactionPointer{{
				Pointer: "ctx:7.1", Policy: "x", SourceSeq: 7, SourceBlock: 1, ContentHash: "sha256:h", ContentChars: 12, Decision: "stubbed",
				ReclaimedTokens: 2, CallId: "c", ToolName: "t", Reason: "old",
			}},
			RespectsProviderSignatures: true,
			Steps:                      []*contextdv1.ReducerStep{{Reducer: "x", TokensBefore: 10, TokensAfter: 8, Touched: 1, Note: "n"}},
			PolicyFingerprint:          "f", Time: timestamppb.New(at),
		},
		Budget: &contextdv1.BudgetReport{
			State: contextdv1.BudgetState_BUDGET_STATE_YELLOW, TargetTokens: 100, RawTokens: 90, ProjectedTokens: 80,
			TierTokens: map[string]uint64{"system": 3}, Tokenizer: "o200k_base", Calibration: 1.25,
		},
		Cache: &contextdv1.CacheReport{StableMessages: 3, StableTokens: 30, BrokenBy: "x"},
	}
	if diff := cmp.Diff(want, wire.HeaderToProto(c), protocmp.Transform()); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	trailer := &contextdv1.ContextTrailer{MessageCount: 5, ContextHash: "sha256:c"}
	if diff := cmp.Diff(trailer, wire.TrailerToProto(c), protocmp.Transform()); diff != "" {
		t.Errorf("trailer (-want +got):\n%s", diff)
	}
}

func TestRenderedToProto(t *testing.T) {
	origins := map[render.Origin]contextdv1.Origin{
		render.Verbatim: contextdv1.Origin_ORIGIN_VERBATIM, render.Stubbed: contextdv1.Origin_ORIGIN_STUBBED,
		render.Clipped: contextdv1.Origin_ORIGIN_CLIPPED, render.Redacted: contextdv1.Origin_ORIGIN_REDACTED,
		render.Summary: contextdv1.Origin_ORIGIN_SUMMARY, render.Reminder: contextdv1.Origin_ORIGIN_REMINDER,
		render.Injected: contextdv1.Origin_ORIGIN_INJECTION,
	}
	for origin, want := range origins {
		m := assemble.Message{
			Message: render.Message{
				Role: eventlog.RoleTool, Origin: origin, Tokens: 5, Seqs: []eventlog.Seq{3, 4},
				Blocks: []eventlog.Block{eventlog.ToolResult{CallID: "c", Content: []eventlog.Block{eventlog.Text{Text: "x"}}, IsError: true}},
			},
			JSON: []byte("{}"),
		}
		got := wire.RenderedToProto(6, m, contextdv1.MessageForm_MESSAGE_FORM_BOTH)
		want := &contextdv1.RenderedMessage{
			Index: 6, Json: []byte("{}"), Origin: want, SourceSeqs: []uint64{3, 4}, Tokens: 5,
			Message: &contextdv1.Message{Role: contextdv1.Role_ROLE_TOOL, Blocks: []*contextdv1.Block{{Kind: &contextdv1.Block_ToolResult{ToolResult: &contextdv1.ToolResult{
				CallId: "c", IsError: true, Content: []*contextdv1.Block{{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: "x"}}}},
			}}}}},
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("message (-want +got):\n%s", diff)
		}
	}
}

func TestFormatToDomain(t *testing.T) {
	for number, name := range contextdv1.Format_name {
		value := contextdv1.Format(number)
		f, err := wire.FormatToDomain(value)
		if err != nil {
			t.Errorf("%s has no format: %v", name, err)
			continue
		}
		record := wire.ProjectionToProto(records.Projection{Budget: budget.Budget{Format: f.Name}}, nil)
		if record.GetFormat() != value {
			t.Errorf("%s became %q, and that %s", name, f.Name, record.GetFormat())
		}
	}
	if got, want := len(render.Formats()), len(contextdv1.Format_name); got != want {
		t.Errorf("%d formats for %d values of the enum", got, want)
	}
	_, err := wire.FormatToDomain(99)
	checkField(t, err, "format")
}

func TestInjectionsToDomain(t *testing.T) {
	text := &contextdv1.Block{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: "x"}}}
	got, err := wire.InjectionsToDomain([]*contextdv1.Injection{{Name: "n", Blocks: []*contextdv1.Block{text}, ReserveTokens: 5}})
	want := []render.Injection{{Name: "n", Blocks: []eventlog.Block{eventlog.Text{Text: "x"}}, ReserveTokens: 5}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, injections (-want +got):\n%s", err, diff)
	}
	_, err = wire.InjectionsToDomain([]*contextdv1.Injection{{Name: "a"}, {Name: "b", Blocks: []*contextdv1.Block{text, {}}}})
	checkField(t, err, "injections[1].blocks[1].kind")
	_, err = wire.InjectionsToDomain([]*contextdv1.Injection{{Name: "\x00"}})
	checkField(t, err, "injections[0].name")
}

func TestSmallConversions(t *testing.T) {
	if got := wire.HaveToDomain(nil); got != (assemble.Have{}) {
		t.Errorf("nothing held became %v", got)
	}
	if got := wire.HaveToDomain(&contextdv1.Have{MessageCount: 3, PrefixHash: "h"}); got != (assemble.Have{MessageCount: 3, PrefixHash: "h"}) {
		t.Errorf("got %v", got)
	}
	if wire.AsOfToDomain(nil) != nil {
		t.Error("no seq became one")
	}
	if got := wire.AsOfToDomain(proto.Uint64(0)); got == nil || *got != 0 {
		t.Error("seq 0 was lost")
	}
}
