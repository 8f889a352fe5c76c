package assemble_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/render"
)

func genInjections(t *rapid.T) []render.Injection {
	var all []render.Injection
	for n := range rapid.IntRange(0, 3).Draw(t, "injections") {
		all = append(all, render.Injection{
			Name:   fmt.Sprintf("injection-%d", n),
			Blocks: []eventlog.Block{eventlog.Text{Text: rapid.StringN(1, 60, 240).Draw(t, "text")}},
		})
	}
	return all
}

// Adding, changing or removing an injection never changes the prefix, its hash, or a decision of the
// reduction. Of two sessions with the same log, one has different injections each turn and one has none:
// every context has the same messages before the injections, and the same record. This holds with
// summaries, too, and for contexts that cannot be made to fit.
func TestInjectionsChangeNoDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var worlds [2]*world
		open := func() (*world, func()) {
			store := memlog.New()
			w := newWorld(t, store, &scripted{answer: writes})
			push(t, store, "s", opening()...)
			return w, func() {
				w.close()
				if err := store.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		for i := range worlds {
			var end func()
			worlds[i], end = open()
			t.Cleanup(end)
		}
		by := rapid.SampledFrom([]string{byRules, byModel}).Draw(t, "by")
		for i := range rapid.IntRange(1, 30).Draw(t, "turns") {
			injected, late := genInjections(t), rapid.IntRange(0, 3).Draw(t, "late") == 0
			var got [2]*assemble.Context
			var errs [2]error
			for k, w := range worlds {
				push(t, w.store, "s", turn(i)...)
				if i == 9 {
					push(t, w.store, "s", eventlog.Event{ID: "reminder", Body: &eventlog.Reminder{Body: "Mind the plan."}})
				}
				req := summarized(by)
				req.Budget.InjectionReserve = 800
				if k == 0 {
					req.Injections = injected
				}
				got[k], errs[k] = w.try(req)
				if !late {
					w.between()
				}
			}
			if fmt.Sprint(errs[0]) != fmt.Sprint(errs[1]) {
				t.Fatalf("turn %d: with injections %v, without %v", i, errs[0], errs[1])
			}
			if errs[0] != nil {
				continue
			}
			n := len(got[1].Messages)
			if len(got[0].Messages) != n+len(injected) || lines(got[0].Messages[:n]) != lines(got[1].Messages) {
				t.Fatalf("turn %d: %d injections changed what stands before them", i, len(injected))
			}
			if got[0].PrefixHash != got[1].PrefixHash || !reflect.DeepEqual(got[0].Proposed, got[1].Proposed) {
				t.Fatalf("turn %d: %d injections changed the hash of the prefix, or what is proposed", i, len(injected))
			}
			record := got[0].Projection
			record.Injected, record.ContextHash, record.ContextMessages, record.PrefixMessages = 0, "", 0, 0
			if diff := cmp.Diff(got[1].Projection, record, cmpopts.IgnoreUnexported(projection.Options{})); diff != "" {
				t.Fatalf("turn %d: %d injections changed a decision:\n%s", i, len(injected), diff)
			}
			cache := got[0].Cache // what the context before showed has its injections
			cache.Shows, cache.Whole = got[1].Cache.Shows, got[1].Cache.Whole
			if diff := cmp.Diff(got[1].Cache, cache); diff != "" {
				t.Fatalf("turn %d: %d injections changed what is said of the cache:\n%s", i, len(injected), diff)
			}
		}
		if diff := cmp.Diff(worlds[1].summaries("s"), worlds[0].summaries("s")); diff != "" {
			t.Fatalf("injections changed a summary:\n%s", diff)
		}
	})
}

// An injection over its reserve fails the request by its name and both sizes, and
// leaves no trace: nothing is recorded, and the next context is what it would have been.
func TestAnInjectionOverItsReserve(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	w := started(t, store, &scripted{answer: writes})
	push(t, store, "s", opening()...)
	for i := range 30 {
		push(t, store, "s", turn(i)...)
	}
	req := summarized(byModel)
	req.Budget.InjectionReserve = 100
	large := eventlog.Text{Text: strings.Repeat("It is noon. ", 20)}
	req.Injections = []render.Injection{
		{Name: "weather", Blocks: []eventlog.Block{eventlog.Text{Text: "Rain."}}, ReserveTokens: 50},
		{Name: "clock", Blocks: []eventlog.Block{large}, ReserveTokens: 40},
	}
	_, err := w.try(req)
	var over *assemble.InjectionError
	if !errors.As(err, &over) {
		t.Fatal(err)
	}
	gauge, err := gauges(tight.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	if least := gauge.Block(large); over.Name != "clock" || over.Reserve != 40 || over.Tokens < least || over.Tokens > least+10 {
		t.Errorf("refused was %+v; the text alone takes %d", over, least)
	}
	for _, part := range []string{`"clock"`, fmt.Sprint(over.Tokens), "40"} {
		if !strings.Contains(over.Error(), part) {
			t.Errorf("%q does not say %s", over.Error(), part)
		}
	}
	if n := mustReplay(t, w, "s"); n != 0 || len(w.proposed) != 0 {
		t.Errorf("%d projections of a refused request were recorded", n)
	}
	req.Injections = nil
	w.assemble(req)
}
