package assemble_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/summarize"
)

// A summary is made before it is needed, and is used from the cut on for which it was made.
func TestASummaryIsThereBeforeItIsNeeded(t *testing.T) {
	for _, by := range []string{byRules, byModel} {
		t.Run(by, func(t *testing.T) {
			onBothStores(t, func(t *testing.T, store eventlog.Store, _ func() eventlog.Store) {
				w := started(t, store, &scripted{answer: writes})
				push(t, store, "s", opening()...)
				cuts := 0
				var before *assemble.Context
				var known []summarize.Summary
				for i := range turns {
					push(t, store, "s", turn(i)...)
					got := w.assemble(summarized(by))
					if cut(t, before, got) {
						cuts++
						_, id := inForce(got)
						newest := known[len(known)-1]
						if id != newest.ID || !strings.Contains(digestOf(got), quoted(newest.Text)) {
							t.Fatalf("turn %d: the cut quotes summary %q; %q was there, with\n%s\nthe digest is\n%s", i, id, newest.ID, newest.Text, digestOf(got))
						}
					}
					w.between()
					known = w.summaries("s")
					before = got
				}
				if cuts < 3 || cuts > turns/4 {
					t.Errorf("%d cuts in %d turns; the test wants several, and turns between them", cuts, turns)
				}
				if n := mustReplay(t, w, "s"); n != turns {
					t.Errorf("%d projections of %d assemblies", n, turns)
				}
			})
		})
	}
}

// cut reports whether groups were dropped between two contexts, and fails where the prefix
// changed without a cause or a summary came into use without a cut.
func cut(t *testing.T, before, now *assemble.Context) bool {
	t.Helper()
	if now.Budget.Projected > now.Budget.Target {
		t.Fatalf("%s holds %d tokens of %d", now.Projection.ID, now.Budget.Projected, now.Budget.Target)
	}
	if before == nil {
		return false
	}
	through, summary := inForce(before)
	nowThrough, nowSummary := inForce(now)
	if nowThrough < through || nowThrough == through && nowSummary != summary {
		t.Fatalf("%s: the run ends at %d with summary %q, and ended at %d with %q", now.Projection.ID, nowThrough, nowSummary, through, summary)
	}
	stable := stableMessages(before.Messages, now.Messages)
	if broken := stable < len(before.Messages); broken != (now.Cache.BrokenBy != "") || now.Cache.StableMessages != stable {
		t.Fatalf("%s: %d of %d messages stand still; reported are %+v", now.Projection.ID, stable, len(before.Messages), now.Cache)
	}
	return nowThrough > through
}

// A late summary changes nothing by itself. If the model answers any number of turns late, every context up
// to the next cut is as it was.
func TestALateSummaryRewritesNothing(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	w := started(t, store, &scripted{answer: writes})
	push(t, store, "s", opening()...)
	made, late := 0, 0
	var before *assemble.Context
	for i := range turns {
		push(t, store, "s", turn(i)...)
		got := w.assemble(summarized(byModel))
		left := cut(t, before, got)
		if i%7 == 6 { // as late as it comes
			made += w.between()
		}
		if made > 0 && !left && before != nil {
			late++
		}
		again := w.assemble(summarized(byModel))
		if again.PrefixHash != got.PrefixHash || again.Projection.After.Summary != got.Projection.After.Summary {
			t.Fatalf("turn %d: the same log gives another context once a summary is there", i)
		}
		before = again
	}
	if made == 0 || late == 0 {
		t.Errorf("%d summaries, %d turns behind one without a cut", made, late)
	}
}

// Summaries cause no cuts: without them the same session has as many.
func TestSummariesCauseNoCuts(t *testing.T) {
	count := func(summaries bool) (cuts int) {
		store := memlog.New()
		defer closeStore(t, store)
		w := started(t, store, nil)
		push(t, store, "s", opening()...)
		var before *assemble.Context
		for i := range turns {
			push(t, store, "s", turn(i)...)
			got := w.assemble(summarized(byRules))
			if cut(t, before, got) {
				cuts++
			}
			if before = got; summaries {
				w.between()
			}
		}
		return cuts
	}
	with, without := count(true), count(false)
	if with > without+1 {
		t.Errorf("%d cuts with summaries, %d without", with, without)
	}
}

// No session summarises the same span twice, whoever asks how often.
func TestNoSpanIsSummarisedTwice(t *testing.T) {
	onBothStores(t, func(t *testing.T, store eventlog.Store, reopen func() eventlog.Store) {
		model := &scripted{answer: writes}
		w := newWorld(t, store, model)
		defer func() { w.close() }()
		push(t, store, "s", opening()...)
		for i := range turns {
			push(t, store, "s", turn(i)...)
			for range 2 {
				w.assemble(summarized(byModel))
			}
			w.between()
			if i%20 == 19 {
				w.close()
				store = reopen()
				w = newWorld(t, store, model)
			}
		}
		type chunk struct {
			from, to eventlog.Seq
			part     int
		}
		seen := map[chunk]bool{}
		var last eventlog.Seq
		for _, r := range model.asked() {
			k := chunk{r.From, r.To, r.Chunk}
			if seen[k] || r.To < last {
				t.Errorf("events %d to %d, part %d, were summarised behind events to %d", r.From, r.To, r.Chunk, last)
			}
			seen[k], last = true, r.To
		}
		if len(seen) < 3 {
			t.Errorf("only %d requests; the test wants a chain", len(seen))
		}
		all := w.summaries("s")
		for i, s := range all {
			if i > 0 && (s.Extends != all[i-1].ID || s.To <= all[i-1].To) {
				t.Errorf("summary %s (to %d) extends %q; before it stands %s (to %d)", s.ID, s.To, s.Extends, all[i-1].ID, all[i-1].To)
			}
		}
	})
}

// A fork after a span uses its summary, and one inside the span does not know it.
func TestForksAndSummaries(t *testing.T) {
	onBothStores(t, func(t *testing.T, store eventlog.Store, _ func() eventlog.Store) {
		w := started(t, store, &scripted{answer: writes})
		push(t, store, "s", opening()...)
		var s summarize.Summary
		n := 0
		for ; s.ID == ""; n++ {
			push(t, store, "s", turn(n)...)
			w.assemble(summarized(byModel))
			if w.between() > 0 {
				s = w.summaries("s")[0]
			}
		}
		info, err := store.Session(context.Background(), "s")
		if err != nil {
			t.Fatal(err)
		}
		for id, at := range map[string]eventlog.Seq{"behind": info.Head, "at": s.To, "inside": s.To - 1} {
			if _, err := store.Fork(context.Background(), eventlog.ForkRequest{ParentID: "s", At: at, NewID: id}); err != nil {
				t.Fatal(err)
			}
			knows := id != "inside"
			if got := len(w.summaries(id)) == 1; got != knows {
				t.Errorf("the fork %s the span has %d summaries", id, len(w.summaries(id)))
			}
			req := summarized(byModel)
			req.SessionID = id
			var quotes bool
			for i := n; !quotes && i < n+turns/2; i++ {
				push(t, store, id, turn(1000+i)...)
				got := w.assemble(req)
				if through, _ := inForce(got); through > 0 {
					quotes = strings.Contains(digestOf(got), quoted(s.Text))
					if _, name := inForce(got); quotes != knows || knows != (name == s.ID) {
						t.Errorf("the fork %s the span uses %q", id, name)
					}
					break
				}
			}
			if knows && !quotes {
				t.Errorf("the fork %s the span was never cut", id)
			}
			mustReplay(t, w, id)
		}
	})
}

// A restart changes no byte, and what was recorded is found again in the store.
func TestSummariesSurviveARestart(t *testing.T) {
	onBothStores(t, func(t *testing.T, store eventlog.Store, reopen func() eventlog.Store) {
		model := &scripted{answer: writes}
		w := newWorld(t, store, model)
		push(t, store, "s", opening()...)
		var last *assemble.Context
		for i := range turns {
			push(t, store, "s", turn(i)...)
			last = w.assemble(summarized(byModel))
			w.between()
		}
		all := w.summaries("s")
		w.close()
		store = reopen()
		w = started(t, store, model)
		if diff := cmp.Diff(all, w.summaries("s")); diff != "" {
			t.Errorf("the summaries after a restart:\n%s", diff)
		}
		got := w.assemble(summarized(byModel))
		if lines(got.Messages) != lines(last.Messages) || got.Cache.BrokenBy != "" {
			t.Errorf("other bytes after a restart: %+v", got.Cache)
		}
		if n := mustReplay(t, w, "s"); n != turns+1 {
			t.Errorf("%d projections replayed", n)
		}
	})
}

// A preview records nothing and proposes nothing, and shows what the request itself
// would.
func TestAPreviewShowsWhatTheRequestWould(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	w := started(t, store, &scripted{answer: writes})
	push(t, store, "s", opening()...)
	for i := range turns {
		push(t, store, "s", turn(i)...)
	}
	req := summarized(byModel)
	req.Preview = true
	preview := w.assemble(req)
	if n := mustReplay(t, w, "s"); n != 0 || len(w.proposed) != 0 || preview.Collapsed != nil {
		t.Errorf("a preview recorded %d projections and proposed %d spans", n, len(w.proposed))
	}
	if len(w.summaries("s")) != 0 {
		t.Error("a preview had a summary made")
	}
	if got := w.assemble(summarized(byModel)); got.PrefixHash != preview.PrefixHash {
		t.Error("the request shows something else than its preview")
	}
}
