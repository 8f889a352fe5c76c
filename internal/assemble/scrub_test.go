package assemble_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/explain"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/scrub"
	"github.com/contextd/contextd/internal/summarize"
)

const credential, scrubMark = "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "[scrubbed:github_token]"

// replaced is how many replacements a context reports.
func replaced(c *assemble.Context) int {
	at := slices.IndexFunc(c.Projection.Steps, func(s reduce.Step) bool { return s.Reducer == "scrub" })
	if at < 1 { // the first step says why groups were dropped
		return -1
	}
	return c.Projection.Steps[at].Touched
}

// A policy that scrubs shows no credential in any format, but for what a provider sealed; says how
// many it replaced, keeps the prefix, decides apart from the same policy without it, and can
// be computed again only by the same rules.
func TestScrubbedContexts(t *testing.T) {
	const sealed = "ghp_zyxwvutsrqponmlkjihgfedcba9876543210"
	store := memlog.New()
	defer closeStore(t, store)
	message := func(id string, role eventlog.Role, blocks ...eventlog.Block) eventlog.Event {
		return eventlog.Event{ID: id, Body: &eventlog.Message{Role: role, Blocks: blocks}}
	}
	push(t, store, "s",
		text("1", eventlog.RoleUser, "Push with "+credential+"."),
		message("2", eventlog.RoleAssistant, eventlog.ToolCall{CallID: "c", Name: "f", Arguments: `{"token":"` + credential + `"}`}),
		message("3", eventlog.RoleTool, eventlog.ToolResult{CallID: "c", Content: []eventlog.Block{eventlog.Text{Text: "used " + credential}}}),
		message("4", eventlog.RoleAssistant, eventlog.Thinking{Text: "It is " + sealed, Signature: "c2ln"}, eventlog.Text{Text: "Pushed."}),
	)
	engine := newEngine(t, store)
	for _, format := range render.Formats() {
		req := request()
		req.Budget.Format = format.Name
		plain := mustAssemble(t, engine, req)
		req.Policy.Projection.Scrub = true
		first := mustAssemble(t, engine, req)
		shown := lines(first.Messages)
		if !strings.Contains(lines(plain.Messages), credential) || strings.Contains(shown, credential) || !strings.Contains(shown, scrubMark) {
			t.Errorf("%s: %s", format.Name, shown)
		}
		if format.Name == "contextd" && !strings.Contains(shown, sealed) {
			t.Errorf("what is signed was changed: %s", shown)
		}
		if first.Projection.Fingerprint == plain.Projection.Fingerprint {
			t.Error("the fingerprint is that of contexts with credentials")
		}
		if n := replaced(first); n != 3 {
			t.Errorf("%d replaced: %+v", n, first.Projection.Steps)
		}
		req.Have = assemble.Have{MessageCount: first.MessageCount, PrefixHash: first.PrefixHash}
		if next := mustAssemble(t, engine, req); next.Broken != nil || next.PrefixHash != first.PrefixHash {
			t.Errorf("%s: the prefix changed: %+v", format.Name, next.Broken)
		}
		if replay, err := newEngine(t, store).Replay(t.Context(), "s", first.Projection.ID); err != nil || !replay.Same {
			t.Errorf("replayed: %q, %v", replay.Difference, err)
		}
		other, err := scrub.New(scrub.Options{Patterns: map[string]string{"verb": "Push"}})
		if err != nil {
			t.Fatal(err)
		}
		models, err := budget.NewModels()
		if err != nil {
			t.Fatal(err)
		}
		stranger := assemble.New(store, assemble.Options{Models: models, Clock: epoch, Gauges: gauges, Scrub: other})
		if replay, err := stranger.Replay(t.Context(), "s", first.Projection.ID); err != nil || replay.Same || !strings.Contains(replay.Difference, "scrub_patterns") {
			t.Errorf("by other rules: %q, %v", replay.Difference, err)
		}
	}
}

// What a harness's boundary shows is scrubbed, as are the events that it keeps and those that come
// after it, whether or not the log was read before.
func TestScrubbedBoundaries(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	req := harnessRequest()
	req.Policy.Projection.Scrub = true
	kept := text("kept", eventlog.RoleUser, "Kept "+credential)
	push(t, store, "s", text("prompt", eventlog.RoleSystem, "You code."), text("gone", eventlog.RoleUser, "Gone "+credential), kept,
		eventlog.Event{ID: "boundary", Body: &eventlog.Compaction{Summary: "So far: " + credential, KeptEventIDs: []string{"kept"}}})
	for i, more := range []string{"", "After it " + credential, "And then " + credential} {
		if more != "" {
			push(t, store, "s", text(more[:3], eventlog.RoleUser, more))
		}
		got := mustAssemble(t, engine, req)
		shown := lines(got.Messages)
		if strings.Contains(shown, credential) || strings.Count(shown, scrubMark) != 2+i || !strings.Contains(shown, "So far: "+scrubMark) {
			t.Errorf("after %d events:\n%s", i, shown)
		}
		if n := replaced(got); n != 3+i {
			t.Errorf("after %d events: %d places replaced", i, n)
		}
		fresh := mustAssemble(t, newEngine(t, store), req)
		if fresh.PrefixHash != got.PrefixHash || replaced(fresh) != replaced(got) {
			t.Errorf("after %d events: read from the beginning the context is\n%s", i, lines(fresh.Messages))
		}
		if replay, err := newEngine(t, store).Replay(t.Context(), "s", got.Projection.ID); err != nil || !replay.Same {
			t.Errorf("replayed: %q, %v", replay.Difference, err)
		}
	}
}

// A summary with credentials is quoted without them, in the context that the compaction records
// and in later ones; Explain says of nothing that was replaced that the model saw it.
func TestScrubbedSummaries(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	push(t, store, "s", opening()...)
	for i := range 40 {
		push(t, store, "s", turn(i)...)
	}
	req := wide("m")
	req.Policy.Projection.Scrub = true
	mustAssemble(t, engine, req)
	compaction := assemble.Compaction{SessionID: "s", Summary: "None leaks, pushed with " + credential}
	plan, err := engine.PlanCompaction(t.Context(), compaction)
	if err != nil || plan.Summary == nil {
		t.Fatalf("the plan is %+v (%v)", plan, err)
	}
	summary, err := engine.PutSummary(t.Context(), *plan.Summary, compaction.Summary)
	if err != nil {
		t.Fatal(err)
	}
	done, _, err := engine.Compact(t.Context(), compaction, &summary, marking(t, store, "s"))
	if err != nil || done == nil {
		t.Fatalf("compacted: %+v (%v)", done, err)
	}
	head := done.Projection.AsOf
	push(t, store, "s",
		text("asked", eventlog.RoleUser, "Push with "+credential),
		eventlog.Event{ID: "note", Body: &eventlog.Reminder{Body: "Mind " + credential}})
	sent := mustAssemble(t, engine, req)
	if shown := lines(sent.Messages); strings.Contains(shown, credential) || !strings.Contains(digestOf(sent), "pushed with "+scrubMark) {
		t.Errorf("the context holds\n%s", shown)
	}
	for _, id := range []string{done.Projection.ID, sent.Projection.ID} {
		if replay, err := newEngine(t, store).Replay(t.Context(), "s", id); err != nil || !replay.Same {
			t.Errorf("%s replayed: %q, %v", id, replay.Difference, err)
		}
	}
	record(t, engine, records.Call{ProjectionID: sent.Projection.ID})
	asked := reduce.Pointer(head+1, 0)
	for text, want := range map[string][]string{
		credential: {
			sighted(head+1, "verbatim", false, asked) + ": scrub: credentials in it were replaced",
			sighted(head+2, "reminder", false, "") + ": scrub: credentials in it were replaced",
		},
		asked:       {sighted(head+1, "verbatim", false, asked) + ": scrub: credentials in it were replaced"},
		"Push with": {sighted(head+1, "verbatim", true, asked) + ": "},
		"Mind":      {sighted(head+2, "reminder", true, "") + ": "},
	} {
		got, err := engine.Explain(t.Context(), "s", assemble.Asked{Call: 0}, text, assemble.Request{})
		if err != nil {
			t.Fatal(err)
		}
		var places []string
		for _, s := range got.Sightings {
			if s.Seq > head {
				places = append(places, says(s)+": "+s.Reason)
			}
			if text == credential && s.Seen {
				t.Errorf("the model is said to have seen a credential: %+v", s)
			}
		}
		if !slices.Equal(places, want) || text == credential && got.Seen {
			t.Errorf("%q was seen: %v, at %q; want %q", text, got.Seen, places, want)
		}
	}
}

// What a model wrote is quoted without credentials, too, in each context that quotes it.
func TestScrubbedModelSummaries(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	w := started(t, store, &scripted{answer: func(context.Context, summarize.Request) (summarize.Output, error) {
		return summarize.Output{Text: "The handlers were pushed with " + credential + ".", Model: "model-1"}, nil
	}})
	push(t, store, "s", opening()...)
	req := summarized(byModel)
	req.Policy.Projection.Scrub = true
	quoting := 0
	for i := range turns {
		push(t, store, "s", turn(i)...)
		got := w.assemble(req)
		if strings.Contains(lines(got.Messages), credential) {
			t.Fatalf("turn %d: the context holds a credential:\n%s", i, digestOf(got))
		}
		if strings.Contains(digestOf(got), "pushed with "+scrubMark) {
			quoting++
		}
		w.between()
	}
	if quoting == 0 {
		t.Error("no context quotes a summary")
	}
	mustReplay(t, w, "s")
}

func sighted(seq eventlog.Seq, shown explain.Shown, seen bool, pointer string) string {
	return says(explain.Sighting{Seq: seq, Shown: shown, Seen: seen, Pointer: pointer})
}
