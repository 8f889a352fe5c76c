package assemble_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/explain"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// calledSession is a session with a compaction, by a summary, before its newest call.
type calledSession struct {
	store   eventlog.Store
	engine  *assemble.Engine
	summary summarize.Summary
	sent    *assemble.Context
}

// newCalledSession makes a long session, has it compacted, and reports three calls: one from before the
// compaction, one without a projection, and one from after it. The last message of the log comes after all
// calls.
func newCalledSession(t *testing.T) calledSession {
	t.Helper()
	store := memlog.New()
	t.Cleanup(func() { closeStore(t, store) })
	s := calledSession{store: store, engine: newEngine(t, store)}
	push(t, store, "s", opening()...)
	push(t, store, "s", eventlog.Event{ID: "old", Body: &eventlog.Reminder{Body: "Mind the early_gate.", DedupeKey: "gate"}})
	for i := range 40 {
		push(t, store, "s", turn(i)...)
	}
	push(t, store, "s", eventlog.Event{ID: "note", Body: &eventlog.Custom{Type: "note", JSON: `{"see":"custom_note"}`}})
	push(t, store, "s", eventlog.Event{ID: "new", Body: &eventlog.Reminder{Body: "Mind the late_gate.", DedupeKey: "gate"}})
	before := mustAssemble(t, s.engine, wide("m")).Projection
	compaction := assemble.Compaction{SessionID: "s", Summary: "None leaks, see tidy_summary."}
	plan, err := s.engine.PlanCompaction(t.Context(), compaction)
	if err != nil || plan.Summary == nil {
		t.Fatalf("the plan is %+v (%v)", plan, err)
	}
	if s.summary, err = s.engine.PutSummary(t.Context(), *plan.Summary, compaction.Summary); err != nil {
		t.Fatal(err)
	}
	if done, _, err := s.engine.Compact(t.Context(), compaction, &s.summary, marking(t, store, "s")); err != nil || done == nil {
		t.Fatalf("compacted: %+v (%v)", done, err)
	}
	s.sent = mustAssemble(t, s.engine, wide("m"))
	record(t, s.engine, records.Call{ProjectionID: before.ID})
	record(t, s.engine, records.Call{Model: "m"})
	record(t, s.engine, records.Call{ProjectionID: s.sent.Projection.ID, InputTokens: 4000})
	push(t, store, "s", text("behind", eventlog.RoleUser, "And what of after_the_call?"))
	return s
}

func (s calledSession) explain(t *testing.T, number uint32, text string) explain.Explanation {
	t.Helper()
	out, err := s.engine.Explain(t.Context(), "s", assemble.Asked{Call: number}, text, assemble.Request{})
	if err != nil {
		t.Fatalf("explain %q: %v", text, err)
	}
	return out
}

// says is a sighting in one line.
func says(s explain.Sighting) string {
	return fmt.Sprintf("%d.%d %s seen=%v %s", s.Seq, s.Block, s.Shown, s.Seen, s.Pointer)
}

func TestExplain(t *testing.T) {
	s := newCalledSession(t)
	newest := s.sent.AsOf - 3 // the result of the last turn; the compaction is the newest event
	for name, want := range map[string]struct {
		call   uint32
		text   string
		seen   bool
		places []string
		reason string // a part of that of the last place
	}{
		"a call's argument that left": {
			3, "pkg/mod3/handler.go", true,
			[]string{"0.0 ledger seen=true ", "11.1 collapsed seen=false ctx:11.1"}, "summary " + s.summary.ID + " replaces it",
		},
		"the same before it left": {1, "pkg/mod3/handler.go", true, []string{"11.1 verbatim seen=true ctx:11.1"}, ""},
		"the summary":             {3, "tidy_summary", true, []string{"0.0 summary seen=true "}, ""},
		"no summary yet":          {1, "tidy_summary", false, nil, ""},
		"what came later":         {0, "after_the_call", false, []string{fmt.Sprintf("%d.0 later seen=false ctx:%d.0", s.sent.AsOf+1, s.sent.AsOf+1)}, fmt.Sprintf("up to event %d", s.sent.AsOf)},
		"what was never said":     {0, "nobody_said_this", false, nil, ""},
		"a reminder":              {3, "late_gate", true, []string{fmt.Sprintf("%d.0 reminder seen=true ", s.sent.AsOf-1)}, ""},
		"a reminder replaced":     {3, "early_gate", true, []string{"0.0 quote seen=true ", "3.0 reminder seen=false "}, `dedupe key "gate"`},
		"a custom event":          {3, "custom_note", false, []string{fmt.Sprintf("%d.0 omitted seen=false ", s.sent.AsOf-2)}, "only messages and reminders"},
		"a pointer to a result that left": {
			3, "ctx:12.0", false, []string{"0.0 ledger seen=false ", "12.0 collapsed seen=false ctx:12.0"}, fmt.Sprintf("it was dropped by the compaction at event %d; summary %s", s.sent.AsOf, s.summary.ID),
		},
		"a pointer to a result that stands": {
			3, fmt.Sprintf("ctx:%d.0", newest), true, []string{fmt.Sprintf("%d.0 verbatim seen=true ctx:%d.0", newest, newest)}, "",
		},
		"a pointer to what came later": {
			3, fmt.Sprintf("ctx:%d.0", s.sent.AsOf+1), false, []string{fmt.Sprintf("%d.0 later seen=false ctx:%d.0", s.sent.AsOf+1, s.sent.AsOf+1)}, "up to event",
		},
		"the call alone": {3, "", false, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.explain(t, want.call, want.text)
			places := make([]string, len(got.Sightings))
			for i, sighting := range got.Sightings {
				places[i] = says(sighting)
			}
			if got.Seen != want.seen || !slices.Equal(places, want.places) {
				t.Errorf("%q was seen: %v, at %q; want %v, at %q\n%+v", want.text, got.Seen, places, want.seen, want.places, got.Sightings)
			}
			if n := len(got.Sightings); n > 0 && (!strings.Contains(got.Sightings[n-1].Reason, want.reason) || want.reason == "" && got.Sightings[n-1].Reason != "") {
				t.Errorf("the reason is %q, want %q", got.Sightings[n-1].Reason, want.reason)
			}
			if got.Projection == nil || got.Projection.ID != got.Call.ProjectionID {
				t.Errorf("the projection of %+v is %+v", got.Call, got.Projection)
			}
		})
	}
	if got := s.explain(t, 2, ""); got.Projection != nil || got.Call.Number != 2 || got.Call.Model != "m" {
		t.Errorf("a call from no projection is explained as %+v", got)
	}
	if got := s.explain(t, 0, ""); got.Call.Number != 3 || got.Call.InForce.SummaryID != s.summary.ID {
		t.Errorf("the newest call is %+v", got.Call)
	}
}

// TestExplainEdits looks for texts in shortened blocks: Explain says whether the text is in the part that
// remains.
func TestExplainEdits(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	push(t, store, "s", opening()...)
	var long strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&long, "entry_%04d of a long list\n", i)
	}
	push(t, store, "s",
		eventlog.Event{ID: "c", Body: &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{
			eventlog.Thinking{Text: "a passing_thought"}, eventlog.Text{Text: "I list."},
			eventlog.ToolCall{CallID: "1", Name: "list", Arguments: "{ \"all\": true }"}, eventlog.ToolCall{CallID: "2", Name: "wait_for", Arguments: `{}`},
		}}},
		eventlog.Event{ID: "r", Body: &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{
			eventlog.ToolResult{CallID: "1", Content: []eventlog.Block{eventlog.Text{Text: long.String()}}},
		}}},
	)
	req := wide("m")
	req.Policy.Reduction.Clipping.MaxTokens = 300
	none := uint32(0)
	req.Policy.Reduction.Thinking.KeepTurns = &none
	clipped := mustAssemble(t, engine, req)
	record(t, engine, records.Call{ProjectionID: clipped.Projection.ID})
	for i := range 30 {
		push(t, store, "s", turn(i)...)
	}
	req.Policy.Reduction.ToolResults = reduce.ToolResults{Default: reduce.Retention{Turns: 2}, OutlineTokens: 40}
	req.Policy.Reduction.Cache = reduce.Cache{EvictEveryTurns: 1}
	stubbed := mustAssemble(t, engine, req)
	record(t, engine, records.Call{ProjectionID: stubbed.Projection.ID})

	for name, want := range map[string]struct {
		call  uint32
		text  string
		place string
		why   string
	}{
		"the head of a clip":      {1, "entry_0000", "4.0 clipped seen=true ctx:4.0", "clipping: "},
		"the tail of a clip":      {1, "entry_1999", "4.0 clipped seen=true ctx:4.0", "clipping: "},
		"the gap of a clip":       {1, "entry_1000", "4.0 clipped seen=false ctx:4.0", "clipping: "},
		"the block of a clip":     {1, "ctx:4.0", "4.0 clipped seen=false ctx:4.0", "clipping: "},
		"a stub":                  {2, "entry_1000", "4.0 stubbed seen=false ctx:4.0", "tool_results: older than 2 turns"},
		"the outline of a stub":   {2, "entry_0000", "4.0 stubbed seen=true ctx:4.0", "tool_results: older than 2 turns"},
		"a stub's own words":      {2, "list result evicted", "4.0 stubbed seen=true ctx:4.0", "tool_results: "},
		"reasoning":               {2, "passing_thought", "3.0 omitted seen=false ctx:3.0", "thinking: "},
		"a made-up result":        {1, "this call was interrupted", "3.3 verbatim seen=true ctx:3.3", "contextd added it"},
		"whitespace in arguments": {1, `"all": true`, "3.2 verbatim seen=false ctx:3.2", "JSON is sent without"},
		"arguments as sent":       {1, `"all":true`, "3.2 verbatim seen=true ctx:3.2", ""},
	} {
		got, err := engine.Explain(context.Background(), "s", assemble.Asked{Call: want.call}, want.text, assemble.Request{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(got.Sightings) != 1 {
			t.Errorf("%s: %q stands at %+v", name, want.text, got.Sightings)
			continue
		}
		if one := got.Sightings[0]; says(one) != want.place || !strings.HasPrefix(one.Reason, want.why) || want.why == "" && one.Reason != "" {
			t.Errorf("%s: %q stands at %s (%s); want %s (%s…)", name, want.text, says(one), one.Reason, want.place, want.why)
		}
	}
}

func TestExplainRefuses(t *testing.T) {
	s := newCalledSession(t)
	for name, want := range map[string]struct {
		session string
		call    uint32
		text    string
		kind    string // of what is not found; empty where the text is at fault
	}{
		"no session":           {"nobody", 0, "x", "session"},
		"no call":              {"s", 4, "x", "call"},
		"no event":             {"s", 3, "ctx:9999.0", "pointer"},
		"no block":             {"s", 3, "ctx:1.7", "pointer"},
		"no message":           {"s", 3, "ctx:3.0", "pointer"},
		"no projection to ask": {"s", 2, "x", ""},
	} {
		_, err := s.engine.Explain(t.Context(), want.session, assemble.Asked{Call: want.call}, want.text, assemble.Request{})
		var missing *eventlog.NotFoundError
		var invalid *eventlog.InvalidError
		switch {
		case want.kind != "" && (!errors.As(err, &missing) || missing.Kind != want.kind):
			t.Errorf("%s: %v", name, err)
		case want.kind == "" && (!errors.As(err, &invalid) || invalid.Field != "text"):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSightingsAreBounded looks for a text that occurs everywhere.
func TestSightingsAreBounded(t *testing.T) {
	s := newCalledSession(t)
	got := s.explain(t, 1, "e")
	if len(got.Sightings) != 100 || !got.Seen {
		t.Errorf("%d sightings, seen: %v", len(got.Sightings), got.Seen)
	}
}

// TestExplainOnlyWhatItCanProve changes a record so that it no longer matches what is computed from it;
// Explain refuses then.
func TestExplainOnlyWhatItCanProve(t *testing.T) {
	s := newCalledSession(t)
	r := s.sent.Projection
	changeRecord(t, s.store, r.AsOf, r.ID, func(m *storagev1.Projection) { clear(m.GetPrefixHash()) })
	_, err := s.engine.Explain(t.Context(), "s", assemble.Asked{Call: 3}, "late_gate", assemble.Request{})
	var invalid *eventlog.InvalidError
	if !errors.As(err, &invalid) || invalid.Field != "text" || !strings.Contains(invalid.Reason, "prefix_hash") {
		t.Errorf("a context that cannot be rebuilt is explained: %v", err)
	}
	if got := s.explain(t, 3, ""); got.Call.Number != 3 {
		t.Errorf("the call is %+v", got.Call)
	}
}
