package compaction_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/prompt"
)

// gated is a model that writes one summary for each value sent to let.
func gated() (m *model, let chan struct{}) {
	let = make(chan struct{})
	return &model{answer: func(ctx context.Context, r summarize.Request) (summarize.Output, error) {
		select {
		case <-let:
			return writes(ctx, r)
		case <-ctx.Done():
			return summarize.Output{}, ctx.Err()
		}
	}}, let
}

// A summary is made between turns, with the hooks' consent, and used when the budget forces the next cut;
// the hooks are notified of the cut.
func TestSummariesAheadOfNeed(t *testing.T) {
	w := start(t, &model{answer: writes})
	asked := w.serve(allow)
	w.open(10)
	var ready string
	before := ""
	for i := 10; i < 40; i++ {
		w.turns(i, i+1)
		got := w.assemble()
		previous := before
		before = got.Projection.ID
		if got.SummarizingThrough > 0 && ready == "" {
			c := <-asked.calls
			if c.Hook != lifecycle.PreCompact || c.Mode != lifecycle.ModeAuto || c.Trigger != eventlog.TriggerThreshold || c.Terms.Strategy != "summarize" || c.TokensBefore != got.Projection.Tokens || c.MessageCount != uint32(got.MessageCount) {
				t.Errorf("asked was %+v", c)
			}
			e := w.published(lifecycle.SummaryStarted, lifecycle.SummaryReady)[1]
			ready = e.Attributes["summary_id"]
			if e.Attributes["to_seq"] != fmt.Sprint(got.SummarizingThrough) || e.Attributes["summarizer"] != "model" {
				t.Errorf("ready is %+v; the context said through %d", e, got.SummarizingThrough)
			}
		}
		if got.Projection.After.CollapsedThrough == 0 {
			continue
		}
		if ready == "" || got.Projection.After.Summary != ready {
			t.Fatalf("the cut uses %q, ready was %q", got.Projection.After.Summary, ready)
		}
		e := w.published(lifecycle.Compacted)[0]
		want := map[string]string{
			"mode": "auto", "trigger": "budget_pressure", "strategy": "summarize", "summary_id": ready,
			"tokens_before": e.Attributes["tokens_before"], "tokens_after": fmt.Sprint(got.Projection.Tokens), "policy": "raw",
			"messages_before": e.Attributes["messages_before"], "messages_after": fmt.Sprint(got.MessageCount),
			"archived_messages": e.Attributes["archived_messages"], "summary_chars": e.Attributes["summary_chars"],
			"as_of_seq": fmt.Sprint(got.AsOf), "projection_id_before": previous,
		}
		if diff := cmp.Diff(want, e.Attributes); diff != "" {
			t.Errorf("told of the cut:\n%s", diff)
		}
		c := <-asked.calls
		if c.Hook != lifecycle.PostCompact || c.Mode != lifecycle.ModeAuto || c.Trigger != eventlog.TriggerBudgetPressure ||
			c.Terms.KeepLastTurns != got.Projection.Reduction.Collapse.KeepLastTurns || c.Terms.TargetTokens != got.Projection.Budget.Share(got.Projection.Reduction.Collapse.To) ||
			c.Policy != "raw" || fmt.Sprint(utf8.RuneCountInString(c.Result.Summary)) != e.Attributes["summary_chars"] || fmt.Sprint(c.Result.ArchivedMessages) != e.Attributes["archived_messages"] ||
			c.Result.TokensAfter != got.Projection.Tokens || c.Result.RemainingMessages != uint32(got.MessageCount) || c.Result.ArchivedMessages == 0 || c.Result.Summary == "" ||
			c.TokensBefore <= c.Result.TokensAfter {
			t.Errorf("told was %+v, %+v", c, c.Result)
		}
		return
	}
	t.Error("the session was never cut")
}

// However many turns pass while a model writes, one span is written at a time, and nothing is queued that
// repeats it.
func TestASlowModelIsAskedForOneSpanAtATime(t *testing.T) { synctest.Test(t, oneSpanAtATime) }

func oneSpanAtATime(t *testing.T) {
	m, let := gated()
	w := start(t, m)
	w.open(10)
	for i := 10; i < 60; i++ {
		w.turns(i, i+1)
		w.assemble()
		synctest.Wait()
		if n := len(m.asked()); n > 1 {
			t.Fatalf("turn %d: %d requests while the first is not answered", i, n)
		}
	}
	close(let)
	w.settle()
	type span struct{ from, to eventlog.Seq }
	var spans []span
	for _, r := range m.asked() {
		if s := (span{r.From, r.To}); r.Chunk == 0 && !strings.Contains(r.System, ownTask) {
			spans = append(spans, s)
		}
	}
	if len(spans) != 1 {
		t.Errorf("while one model was slow, these spans were queued: %v", spans)
	}
}

// A context reports the summary that is being made, even if more could be proposed by then, and none while
// the summarizer is resting.
func TestAContextTellsOfTheSummaryInTheMaking(t *testing.T) { synctest.Test(t, summaryInTheMaking) }

func summaryInTheMaking(t *testing.T) {
	let, ok := make(chan struct{}), true // the first answer is one, no other
	m := &model{answer: func(ctx context.Context, r summarize.Request) (summarize.Output, error) {
		<-let
		if !ok {
			return fails(ctx, r)
		}
		ok = false
		return writes(ctx, r)
	}}
	w := start(t, m)
	w.open(12)
	first := w.assemble().SummarizingThrough
	started := w.published(lifecycle.SummaryStarted)[0]
	if first == 0 || started.Attributes["to_seq"] != fmt.Sprint(first) {
		t.Fatalf("the context says through %d, begun was %+v", first, started)
	}
	for i := 12; i < 16; i++ {
		w.turns(i, i+1)
		if through := w.assemble().SummarizingThrough; through != first && through != 0 {
			t.Errorf("turn %d: the context says through %d, and the model writes through %d", i, through, first)
		}
	}
	close(let)
	synctest.Wait()
	open := false
	for i := 16; i < 60 && !open; i++ {
		w.turns(i, i+1)
		w.assemble()
		synctest.Wait()
		open = w.scheduler.Resting("model")
	}
	if !open {
		t.Fatal("the breaker did not open")
	}
	asked := len(m.asked())
	for i := 60; i < 80; i++ {
		w.turns(i, i+1)
		if through := w.assemble().SummarizingThrough; through != 0 {
			t.Fatalf("turn %d: the context says through %d, and the model is left alone", i, through)
		}
		synctest.Wait()
	}
	if n := len(m.asked()); n != asked {
		t.Errorf("the model was asked %d times while it is left alone", n-asked)
	}
}

const ownTask = "Only to see the end of all others."

// settle waits until the scheduler has nothing more to do for the session, whose jobs run one after the
// other.
func (w *world) settle() {
	w.t.Helper()
	w.assemble()
	plan, err := w.engine.PlanCompaction(w.t.Context(), request(reduce.Summarize, 1000).Compaction)
	if err != nil {
		w.t.Fatal(err)
	}
	if plan.Summary == nil {
		return
	}
	plan.Summary.Instructions.Text = ownTask
	if _, err := w.scheduler.Do(w.t.Context(), *plan.Summary); err != nil {
		w.t.Fatal(err)
	}
}

// After a veto, hooks are not asked again until the span has grown enough.
func TestAVetoAheadOfNeed(t *testing.T) { synctest.Test(t, vetoAheadOfNeed) }

func vetoAheadOfNeed(t *testing.T) {
	m := &model{answer: writes}
	w := start(t, m)
	asked := w.serve(block)
	w.open(12)
	first := w.assemble()
	for range 3 {
		synctest.Wait() // for the hook's answer
		w.assemble()
	}
	synctest.Wait()
	e := w.published(lifecycle.CompactionVetoed)[0]
	want := map[string]string{"mode": "auto", "trigger": "threshold", "reason": "in the middle of a plan"}
	if diff := cmp.Diff(want, e.Attributes); diff != "" || first.SummarizingThrough == 0 {
		t.Errorf("told was of the veto to a span through %d:\n%s", first.SummarizingThrough, diff)
	}
	w.silent()
	if n := len(asked.calls); n != 1 {
		t.Errorf("the hook was asked %d times about one span", n)
	}
	for i := 12; i < 40; i++ {
		w.turns(i, i+1)
		w.assemble()
		synctest.Wait()
	}
	if n := len(asked.calls); n < 2 || n > 10 {
		t.Errorf("the hook was asked %d times in 28 turns, want each time that a tenth of the target is new", n)
	}
	if last := w.assemble(); last.Projection.After.Summary != "" || len(m.asked()) > 0 {
		t.Errorf("the model was asked %d times against the hook's will", len(m.asked()))
	}
}

// If a hook changes the terms, the span that the new terms lead to is summarized, by the instructions of the request.
func TestHooksModifyAheadOfNeed(t *testing.T) {
	m := &model{answer: writes}
	w := start(t, m)
	w.serve(func(lifecycle.Call) lifecycle.Reply {
		return lifecycle.Reply{Decision: lifecycle.Modify, KeepLastTurns: pointer(uint32(7))}
	})
	w.open(12)
	req := settings()
	req.Policy.Summaries.Instructions = prompt.Instructions{Text: "Name the files."}
	got, err := w.ask(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	e := w.published(lifecycle.SummaryStarted, lifecycle.SummaryReady)[1]
	all, err := logtest.Collect(summarize.NewestFirst(t.Context(), w.store, "s", 0, ""))
	if err != nil || len(all) != 1 || all[0].To >= got.SummarizingThrough || e.Attributes["summary_id"] != all[0].ID {
		t.Errorf("proposed was a span through %d; made were %+v (%v)", got.SummarizingThrough, all, err)
	}
	if asked := m.asked(); len(asked) != 1 || !strings.Contains(asked[0].System+asked[0].Prompt, "Name the files.") {
		t.Errorf("the model was asked by other instructions: %+v", asked)
	}
}

// Closing ends hooks and models that hang.
func TestClosingEndsWhatIsMadeAhead(t *testing.T) {
	m, _ := gated()
	w := start(t, m)
	w.open(12)
	w.assemble()
	w.published(lifecycle.SummaryStarted)
	w.Compactor.Close()
	w.assemble() // proposes to nobody
	w.scheduler.Close()
	w.silent()
}

// A summary that was not begun when a daemon stopped is proposed by the next assembly after the start.
func TestASummaryNotBegunIsProposedAgain(t *testing.T) {
	first := start(t, &model{answer: writes})
	silent := first.hooks.Subscribe(lifecycle.Subscription{PreCompact: true}) // so that it is not begun
	defer silent.Close()
	first.open(12)
	due := first.assemble().SummarizingThrough
	first.Compactor.Close()
	first.scheduler.Close()
	first.silent()
	m := &model{answer: writes}
	again := startOn(t, first.store, m)
	if err := again.scheduler.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := again.assemble().SummarizingThrough; due == 0 || got != due {
		t.Errorf("after the start a summary through %d is made, before it was one through %d", got, due)
	}
	again.published(lifecycle.SummaryStarted, lifecycle.SummaryReady)
}

// After a prompt that the provider refused, the next context is smaller, and the cut for that is reported
// like any other.
func TestACutAfterARejectionIsTold(t *testing.T) {
	w := start(t, &model{answer: writes})
	w.open(12)
	before := w.assemble()
	w.published(lifecycle.SummaryStarted, lifecycle.SummaryReady)
	if _, _, err := w.engine.RecordCall(t.Context(), records.Call{SessionID: "s", ProjectionID: before.Projection.ID, Rejected: true}); err != nil {
		t.Fatal(err)
	}
	after := w.assemble()
	if after.Projection.After.CollapsedThrough == 0 || after.Projection.Tokens >= before.Projection.Tokens {
		t.Fatalf("%d tokens were refused, and the next context holds %d", before.Projection.Tokens, after.Projection.Tokens)
	}
	e := w.published(lifecycle.Compacted)[0]
	if e.Attributes["trigger"] != "budget_pressure" || e.Attributes["mode"] != "auto" {
		t.Errorf("told was %+v", e)
	}
}

// A veto, and a question to hooks in progress, end with the session. Hooks are asked about a new session
// with its id, even if everything in it is the same.
func TestAVetoEndsWithItsSession(t *testing.T) { synctest.Test(t, vetoEndsWithItsSession) }

func vetoEndsWithItsSession(t *testing.T) {
	w := start(t, &model{answer: writes})
	vetoes := w.serve(block)
	for round := range 3 {
		w.open(12)
		w.assemble()
		synctest.Wait()
		w.assemble() // the same span is not asked about again
		synctest.Wait()
		if n := len(vetoes.calls); n != 1 {
			t.Fatalf("hooks were asked %d times", n)
		}
		<-vetoes.calls
		session, err := w.store.Session(t.Context(), "s")
		if err == nil {
			err = w.store.DeleteSession(t.Context(), "s", session.Incarnation, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		if round > 0 { // the first is replaced before its deletion has ended
			w.engine.Forget("s")
			w.Forget("s", session.Incarnation)
		}
	}
}
