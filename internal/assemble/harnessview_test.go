package assemble_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/pointers"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
)

func boundary(id string, c eventlog.Compaction) eventlog.Event {
	return eventlog.Event{ID: id, Body: &c}
}

func harnessRequest() assemble.Request {
	req := request()
	req.Policy.Projection.Name = projection.HarnessView
	return req
}

// texts are the texts of a context, one for each message.
func texts(c *assemble.Context) []string {
	var out []string
	for _, m := range c.Messages {
		var said []string
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case eventlog.Text:
				said = append(said, b.Text)
			case eventlog.ProviderBlock:
				said = append(said, b.Provider+" "+b.JSON)
			}
		}
		out = append(out, strings.Join(said, "|"))
	}
	return out
}

const secret = `{"type":"compaction","encrypted_content":"gAAA"}`

func TestHarnessView(t *testing.T) {
	before := []eventlog.Event{
		text("prompt", eventlog.RoleSystem, "You code."), text("one", eventlog.RoleUser, "first"), text("two", eventlog.RoleAssistant, "second"),
		text("three", eventlog.RoleUser, "third"), text("four", eventlog.RoleAssistant, "fourth"),
	}
	pinned := text("five", eventlog.RoleUser, "pinned")
	pinned.Body.(*eventlog.Message).Pinned = true
	injected := text("rules", eventlog.RoleSystem, "The harness's rules.")
	injected.Labels = map[string]string{"harness.injected": "true"}
	before = slices.Insert(before, 1, injected)
	after := []eventlog.Event{text("six", eventlog.RoleUser, "sixth"), text("seven", eventlog.RoleAssistant, "seventh")}
	codex := `{"type":"compacted","payload":{"message":"","replacement_history":[{"type":"message"},` + secret + `]}}`
	for name, c := range map[string]struct {
		boundaries []eventlog.Event
		want       []string
	}{
		"nothing kept": {
			[]eventlog.Event{boundary("c", eventlog.Compaction{Summary: "It began."})},
			[]string{"You code.", "It began.", "pinned", "sixth", "seventh"},
		},
		"a tail kept": {
			[]eventlog.Event{boundary("c", eventlog.Compaction{Summary: "It began.", KeptEventIDs: []string{"three", "four"}})},
			[]string{"You code.", "It began.", "third", "fourth", "pinned", "sixth", "seventh"},
		},
		"the first kept": {
			[]eventlog.Event{boundary("c", eventlog.Compaction{Summary: "It began.", KeptEventIDs: []string{"one"}})},
			[]string{"You code.", "It began.", "first", "pinned", "sixth", "seventh"},
		},
		"the later of two": {
			[]eventlog.Event{boundary("c", eventlog.Compaction{Summary: "Earlier."}), boundary("d", eventlog.Compaction{Summary: "Later.", KeptEventIDs: []string{"four"}})},
			[]string{"You code.", "Later.", "fourth", "pinned", "sixth", "seventh"},
		},
		"a summary behind what is kept": {
			[]eventlog.Event{boundary("c", eventlog.Compaction{KeptEventIDs: []string{"one", "three"}, NativeJSON: codex})},
			[]string{"You code.", "first", "third", "pinned", "openai " + secret, "sixth", "seventh"},
		},
		"a summary that nobody has": {
			[]eventlog.Event{boundary("c", eventlog.Compaction{NativeJSON: `{"capabilityType":22}`})},
			[]string{"You code.", "The harness's rules.", "first", "second", "third", "fourth", "pinned", "sixth", "seventh"},
		},
		"what the harness injected kept": {
			[]eventlog.Event{boundary("c", eventlog.Compaction{Summary: "It began.", KeptEventIDs: []string{"rules", "four"}})},
			[]string{"You code.", "It began.", "The harness's rules.", "fourth", "pinned", "sixth", "seventh"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBothStores(t, func(t *testing.T, store eventlog.Store, reopen func() eventlog.Store) {
				engine := newEngine(t, store)
				push(t, store, "s", slices.Concat(before, []eventlog.Event{pinned}, c.boundaries, after)...)
				got := mustAssemble(t, engine, harnessRequest())
				if !slices.Equal(texts(got), c.want) {
					t.Fatalf("got %q, want %q", texts(got), c.want)
				}
				whole := mustAssemble(t, engine, request())
				if got.Budget.Raw != whole.Budget.Raw {
					t.Errorf("the log weighs %d, or %d under the policy", whole.Budget.Raw, got.Budget.Raw)
				}
				if len(whole.Messages) != len(before)+1+len(after) {
					t.Errorf("without the policy %q are shown", texts(whole))
				}
				again, err := newEngine(t, reopen()).Replay(context.Background(), "s", got.Projection.ID)
				if err != nil || !again.Same {
					t.Errorf("replayed: %q, %v", again.Difference, err)
				}
			})
		})
	}
}

// imported puts the first session of a transcript into a new store.
func imported(t *testing.T, name string, records ...string) eventlog.Store {
	t.Helper()
	tr, err := harness.Read(strings.NewReader(strings.Join(records, "\n")), name)
	if err != nil {
		t.Fatal(err)
	}
	store := memlog.New()
	t.Cleanup(func() { store.Close() })
	push(t, store, "s", tr.Sessions[0].Events...)
	return store
}

// TestHarnessViewOfSubagents: messages that came in progress records do not say what they
// follow, and none is left out.
func TestHarnessViewOfSubagents(t *testing.T) {
	carried := func(message string) string {
		return `{"type":"progress","parentToolUseID":"t","data":{"type":"agent_progress","agentId":"a","message":` + message + `}}`
	}
	store := imported(t, "claude",
		carried(`{"type":"user","uuid":"u","message":{"role":"user","content":"Count."}}`),
		carried(`{"type":"assistant","uuid":"v","message":{"role":"assistant","id":"m","model":"x","content":[{"type":"text","text":"One."}]}}`),
		carried(`{"type":"user","uuid":"w","message":{"role":"user","content":"Go on."}}`),
		carried(`{"type":"assistant","uuid":"x","message":{"role":"assistant","id":"n","model":"x","content":[{"type":"text","text":"Two."}]}}`))
	got := texts(mustAssemble(t, newEngine(t, store), harnessRequest()))
	if want := []string{"Count.", "One.", "Go on.", "Two."}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestHarnessViewOfNothing: if the harness shows nothing of a log, the request fails instead of giving an
// empty context.
func TestHarnessViewOfNothing(t *testing.T) {
	store := memlog.New()
	defer store.Close()
	failed := text("one", eventlog.RoleAssistant, "half")
	failed.Labels = map[string]string{"pi.stop_reason": "aborted"}
	push(t, store, "s", failed)
	engine := newEngine(t, store)
	var nothing *assemble.NothingShownError
	if _, err := engine.Assemble(context.Background(), harnessRequest()); !errors.As(err, &nothing) || nothing.Tokens == 0 {
		t.Errorf("%v", err)
	}
	push(t, store, "s", text("two", eventlog.RoleUser, "Again."))
	if got := texts(mustAssemble(t, engine, harnessRequest())); !slices.Equal(got, []string{"Again."}) {
		t.Errorf("%q", got)
	}
}

// TestBeginsCompacted: the summary with which a transcript begins is in every context, once.
func TestBeginsCompacted(t *testing.T) {
	store := imported(t, "claude",
		`{"parentUuid":null,"type":"system","subtype":"compact_boundary","uuid":"c","compactMetadata":{"trigger":"auto"}}`,
		`{"parentUuid":"c","type":"user","uuid":"s","isCompactSummary":true,"message":{"role":"user","content":"The parser fails."}}`,
		`{"parentUuid":"s","type":"user","uuid":"u","message":{"role":"user","content":"Mend it."}}`,
		`{"parentUuid":"u","type":"assistant","uuid":"a","message":{"role":"assistant","id":"m","model":"x","content":[{"type":"text","text":"Mended."}]}}`)
	want := []string{"The parser fails.", "Mend it.", "Mended."}
	for _, req := range []assemble.Request{request(), harnessRequest()} {
		if got := texts(mustAssemble(t, newEngine(t, store), req)); !slices.Equal(got, want) {
			t.Errorf("%s: %q", req.Policy.Projection.Name, got)
		}
	}
	// Where the rest of the file comes later, nothing is said twice.
	half := memlog.New()
	defer half.Close()
	engine := newEngine(t, half)
	for e, err := range store.Read(context.Background(), "s", 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		push(t, half, "s", e)
		mustAssemble(t, engine, harnessRequest())
	}
	if got := texts(mustAssemble(t, engine, harnessRequest())); !slices.Equal(got, want) {
		t.Errorf("read as it came: %q", got)
	}
}

// What a boundary shows can be had by its pointer.
func TestHarnessViewResolves(t *testing.T) {
	store := memlog.New()
	defer store.Close()
	push(t, store, "s", text("one", eventlog.RoleUser, "first"), boundary("c", eventlog.Compaction{Summary: "It began."}))
	_, block, err := pointers.Resolve(context.Background(), store, "s", "ctx:2.0")
	if said, ok := block.(eventlog.Text); !ok || said.Text != "It began." {
		t.Errorf("%v, %v", block, err)
	}
}

// However a log grows, with any boundaries, a view that is extended event by event is the same as one that
// is read at once, in full and under a small budget, and it can be replayed.
func TestHarnessViewGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := memlog.New()
		defer store.Close()
		along := newEngine(t, store)
		var ids []string
		for i, e := range logtest.GenLog(2, 40).Draw(t, "log") {
			if c, ok := e.Body.(*eventlog.Compaction); ok {
				c.KeptEventIDs = nil
				if len(ids) > 0 {
					c.KeptEventIDs = rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 0, min(3, len(ids)), rapid.ID[string]).Draw(t, "kept")
				}
			}
			push(t, store, "s", e)
			ids = append(ids, e.ID)
			if i%3 > 0 {
				continue
			}
			req := harnessRequest()
			req.Budget.MaxTokens = rapid.SampledFrom([]uint64{600, 100_000}).Draw(t, "window")
			got, err := along.Assemble(context.Background(), req)
			if err != nil {
				continue // it does not fit
			}
			replay, err := newEngine(t, store).Replay(context.Background(), "s", got.Projection.ID)
			if err != nil || !replay.Same {
				t.Fatalf("event %d: %q, %v", i, replay.Difference, err)
			}
			if got.Budget.Projected > got.Budget.Target {
				t.Fatalf("%d tokens of %d", got.Budget.Projected, got.Budget.Target)
			}
		}
	})
}

// Failed replies are in the log. The view of a harness that does not send them to models omits them,
// whether the log is read at once or event by event.
func TestHarnessViewLeavesOutFailedReplies(t *testing.T) {
	failed := func(id, label string) eventlog.Event {
		e := text(id, eventlog.RoleAssistant, id)
		e.Labels = map[string]string{label: "aborted"}
		return e
	}
	log := []eventlog.Event{
		text("one", eventlog.RoleUser, "first"), failed("half", "pi.stop_reason"), text("two", eventlog.RoleAssistant, "second"),
		boundary("c", eventlog.Compaction{Summary: "It began.", KeptEventIDs: []string{"half", "two"}}),
		failed("none", "opencode.failed"), text("three", eventlog.RoleUser, "third"), failed("late", "pi.stop_reason"),
	}
	want := [][]string{
		{"first"}, {"first"}, {"first", "second"}, {"It began.", "second"}, {"It began.", "second"},
		{"It began.", "second", "third"}, {"It began.", "second", "third"},
	}
	onBothStores(t, func(t *testing.T, store eventlog.Store, reopen func() eventlog.Store) {
		along := newEngine(t, store)
		for i, e := range log {
			push(t, store, "s", e)
			got := mustAssemble(t, along, harnessRequest())
			if !slices.Equal(texts(got), want[i]) {
				t.Errorf("after %s: got %q, want %q", e.ID, texts(got), want[i])
			}
			if replay, err := newEngine(t, store).Replay(context.Background(), "s", got.Projection.ID); err != nil || !replay.Same {
				t.Errorf("after %s, replayed: %q, %v", e.ID, replay.Difference, err)
			}
		}
		whole := mustAssemble(t, newEngine(t, reopen()), request())
		if len(whole.Messages) != 6 {
			t.Errorf("the whole history is %q", texts(whole))
		}
	})
}

// A branch that Claude Code has abandoned is not shown from then on. Contexts shown before that can still
// be replayed.
func TestHarnessViewLeavesBranches(t *testing.T) {
	record := func(kind, uuid, parent, said string) string {
		return fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%s,"message":{"role":%q,"content":%q}}`, kind, uuid, parent, kind, said)
	}
	read, err := harness.Read(strings.NewReader(strings.Join([]string{
		record("user", "u1", "null", "first"), record("assistant", "a1", `"u1"`, "second"),
		record("user", "u2", `"a1"`, "third"), record("assistant", "a2", `"u2"`, "fourth"), record("user", "u3", `"a1"`, "fifth"),
	}, "\n")), "claude")
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"first"}, {"first", "second"}, {"first", "second", "third"}, {"first", "second", "third", "fourth"}, {"first", "second", "fifth"},
		{"first", "second", "fifth", "sixth"},
	}
	onBothStores(t, func(t *testing.T, store eventlog.Store, reopen func() eventlog.Store) {
		engine := newEngine(t, store)
		var made []string
		for i, e := range append(slices.Clone(read.Sessions[0].Events), text("live", eventlog.RoleAssistant, "sixth")) {
			push(t, store, "s", e)
			got := mustAssemble(t, engine, harnessRequest())
			if !slices.Equal(texts(got), want[i]) {
				t.Errorf("got %q, want %q", texts(got), want[i])
			}
			made = append(made, got.Projection.ID)
		}
		again := newEngine(t, reopen())
		for _, id := range made {
			if replayed, err := again.Replay(context.Background(), "s", id); err != nil || !replayed.Same {
				t.Errorf("replayed: %q, %v", replayed.Difference, err)
			}
		}
	})
}

// TestHarnessViewFrames: what a harness puts around words when it sends them is shown, and explained;
// other policies and pointers have the words alone.
func TestHarnessViewFrames(t *testing.T) {
	read, err := harness.Read(strings.NewReader(strings.Join([]string{
		`{"type":"user","uuid":"u","version":"2.1.47","message":{"role":"user","content":"Build it."}}`,
		`{"type":"assistant","uuid":"a","message":{"role":"assistant","id":"m","model":"x","content":[{"type":"text","text":"On it."}]}}`,
		`{"type":"attachment","uuid":"q","attachment":{"type":"queued_command","prompt":"Test it, too."}}`,
		`{"type":"assistant","uuid":"b","message":{"role":"assistant","id":"n","model":"x","content":[{"type":"text","text":"Done."}]}}`,
	}, "\n")), "claude")
	if err != nil {
		t.Fatal(err)
	}
	const sent = "<system-reminder>\nThe user sent a new message while you were working:\nTest it, too.\n\n" +
		"IMPORTANT: After completing your current task, you MUST address the user's message above. Do not ignore it.\n</system-reminder>"
	onBothStores(t, func(t *testing.T, store eventlog.Store, reopen func() eventlog.Store) {
		engine := newEngine(t, store)
		push(t, store, "s", read.Sessions[0].Events...)
		if got := texts(mustAssemble(t, engine, request())); !slices.Equal(got, []string{"Build it.", "On it.", "Test it, too.", "Done."}) {
			t.Errorf("without the policy: %q", got)
		}
		view := mustAssemble(t, engine, harnessRequest())
		if got := texts(view); !slices.Equal(got, []string{"Build it.", "On it.", sent, "Done."}) {
			t.Errorf("%q", got)
		}
		if _, _, err := engine.RecordCall(t.Context(), records.Call{SessionID: "s", ProjectionID: view.Projection.ID}); err != nil {
			t.Fatal(err)
		}
		for text, why := range map[string]string{"Test it": "", "ctx:3.0": "", sent: "the harness added it", "MUST address": "the harness added it"} {
			got, err := engine.Explain(t.Context(), "s", assemble.Asked{Call: 0}, text, assemble.Request{})
			if err != nil || !got.Seen || len(got.Sightings) != 1 || got.Sightings[0].Reason != why {
				t.Errorf("%q: %+v, %v", text, got, err)
			}
		}
		if again, err := newEngine(t, reopen()).Replay(t.Context(), "s", view.Projection.ID); err != nil || !again.Same {
			t.Errorf("replayed: %q, %v", again.Difference, err)
		}
	})
}
