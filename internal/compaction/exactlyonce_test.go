package compaction_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/compaction"
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/extractive"
)

// run is one run of a daemon on a disk, with its watcher.
type run struct {
	store     eventlog.Store
	journal   *lifecycle.Journal
	scheduler *summarize.Scheduler
	*compaction.Compactor
	watch *lifecycle.Watch
}

func live(t *rapid.T, fs vfs.FS, ids *int) *run {
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	store, err := disklog.Open("log", disklog.Options{FS: fs})
	must(err)
	models, err := budget.NewModels()
	must(err)
	registry, err := summarize.NewRegistry(map[string]summarize.Summarizer{"model": {Backend: extractive.Backend{}}})
	must(err)
	l := &run{store: store, journal: lifecycle.NewJournal(store, lifecycle.NewBus(lifecycle.BusOptions{Backlog: 2}), noon)}
	engine := assemble.New(store, assemble.Options{Models: models, Gauges: gauges, Clock: noon, CacheSessions: 8, Journal: l.journal})
	news := compaction.NewNews(l.journal)
	l.scheduler = summarize.NewScheduler(summarize.Options{Store: store, Sessions: engine, Registry: registry, Observer: news, Journal: l.journal, Now: noon})
	l.Compactor = compaction.New(compaction.Options{
		Engine: engine, Scheduler: l.scheduler, News: news, Journal: l.journal, Store: store, Clock: noon, Logger: slog.New(slog.DiscardHandler),
		Hooks: lifecycle.NewHooks(lifecycle.HooksOptions{}),
		NewID: func() (string, error) { *ids++; return fmt.Sprint("id-", *ids), nil },
	})
	return l
}

func (l *run) stop(t *rapid.T) {
	l.Compactor.Close()
	l.scheduler.Close()
	l.watch.Close()
	if err := l.store.Close(); err != nil {
		t.Fatal(err)
	}
}

// Whatever happens to a session, its daemon and its watcher, the watcher gets each event once, in the order
// of the numbers: one for each record, and one for each compaction event in the log.
func TestEventsAreSeenExactlyOnce(t *testing.T) { rapid.Check(t, exactlyOnce) }

func exactlyOnce(t *rapid.T) {
	ctx := context.Background()
	fs, ids := vfs.NewMem(), 0
	var seen []lifecycle.Event
	l := live(t, fs, &ids)
	watch := func() {
		if l.watch != nil {
			l.watch.Close()
		}
		var err error
		if l.watch, err = l.journal.Watch(ctx, []string{"s"}, []lifecycle.Cursor{{SessionID: "s", Number: uint64(len(seen))}}); err != nil {
			t.Fatal(err)
		}
	}
	// see takes up to n events; an own event is the last that there is.
	see := func(n int) {
		if err := l.journal.Put(ctx, lifecycle.Entry{SessionID: "s", Events: []lifecycle.Event{lifecycle.Happened("end")}}); err != nil {
			t.Fatal(err)
		}
		for e, err := range l.watch.Events(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			if seen = append(seen, e); e.Number != uint64(len(seen)) {
				t.Fatalf("event %d came as the %dth", e.Number, len(seen))
			}
			if n--; n <= 0 || e.Type == "end" {
				break
			}
		}
	}
	turns := 0
	grow := func(n int) {
		batch := eventlog.Batch{Time: noon()}
		for range n {
			turns++
			batch.Events = append(batch.Events, turnOf(turns)...)
		}
		commit, err := l.store.Append(ctx, "s", batch)
		if err == nil {
			_, err = commit.Wait(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	grow(1)
	watch()
	key := ""
	assembled := func(key string) {
		req := settings()
		req.IdempotencyKey, req.Digest = key, []byte(key)
		if _, _, err := l.Assemble(ctx, req); err != nil {
			t.Fatal(err)
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"grow": func(t *rapid.T) { grow(rapid.IntRange(1, 5).Draw(t, "turns")) },
		"assemble": func(*rapid.T) {
			ids++
			key = fmt.Sprint("key-", ids)
			assembled(key)
		},
		"retry": func(*rapid.T) { assembled(key) },
		"compact": func(t *rapid.T) {
			strategy := rapid.SampledFrom([]reduce.Strategy{reduce.Mask, reduce.Drop, reduce.Summarize}).Draw(t, "strategy")
			if _, err := l.Compact(ctx, request(strategy, 1500)); err != nil {
				t.Fatal(err)
			}
		},
		"undo": func(*rapid.T) {
			if _, err := l.Undo(ctx, "s", 0); err != nil {
				t.Fatal(err)
			}
		},
		"see": func(t *rapid.T) { see(rapid.IntRange(1, 9).Draw(t, "events")) },
		"cut": func(*rapid.T) { watch() },
		"restart": func(t *rapid.T) {
			l.stop(t)
			l = live(t, fs, &ids)
			watch()
		},
	})
	l.Compactor.Close()
	l.scheduler.Close() // no summary comes after the last event
	if err := l.journal.Put(ctx, lifecycle.Entry{SessionID: "s", Events: []lifecycle.Event{lifecycle.Happened("last")}}); err != nil {
		t.Fatal(err)
	}
	for len(seen) == 0 || seen[len(seen)-1].Type != "last" {
		see(1)
	}
	l.agrees(ctx, t, seen)
	l.stop(t)
}

// agrees compares the events that the watcher saw with what is stored.
func (l *run) agrees(ctx context.Context, t *rapid.T, seen []lifecycle.Event) {
	var shown, recorded []string
	count := map[lifecycle.Type]int{}
	for _, e := range seen {
		if e.Type == lifecycle.Projected {
			shown = append(shown, e.Attributes[lifecycle.AttributeProjectionID])
		}
		if e.Attributes[lifecycle.AttributeMode] != lifecycle.ModeAuto {
			count[e.Type]++
		}
	}
	all, err := logtest.Collect(records.After(ctx, l.store, "s", ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		recorded = append(recorded, r.ID)
	}
	slices.Sort(shown)
	slices.Sort(recorded)
	if !slices.Equal(shown, recorded) {
		t.Errorf("projected were %q, recorded %q", shown, recorded)
	}
	marks, undone := 0, 0
	for e, err := range l.store.Read(ctx, "s", 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := e.Body.(*eventlog.Compaction); ok && c.Decision.Undoes > 0 {
			undone++
		} else if ok {
			marks++
		}
	}
	if count[lifecycle.Compacted] != marks || count[lifecycle.CompactionUndone] != undone {
		t.Errorf("%d compactions and %d take-backs in the log, reported %v", marks, undone, count)
	}
	summaries, err := logtest.Collect(summarize.NewestFirst(ctx, l.store, "s", 0, ""))
	if err != nil {
		t.Fatal(err)
	}
	if count[lifecycle.SummaryReady] != len(summaries) {
		t.Errorf("%d summaries, reported %v", len(summaries), count)
	}
}
