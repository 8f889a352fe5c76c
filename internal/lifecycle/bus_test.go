package lifecycle_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/lifecycle"
)

// numbered is event i, at second i.
func numbered(session string, i int) lifecycle.Event {
	return lifecycle.Event{
		SessionID: session, Type: lifecycle.SummaryReady, Time: time.Unix(int64(i), 0),
		Attributes: map[string]string{lifecycle.AttributeSummaryID: strconv.Itoa(i)},
	}
}

// read takes n events and waits for those that are not there.
func read(w *lifecycle.Watcher, n int) []lifecycle.Event {
	var out []lifecycle.Event
	if n == 0 {
		return nil
	}
	for e := range w.Events(context.Background()) {
		if out = append(out, e); len(out) == n {
			break
		}
	}
	return out
}

// TestSlowWatcherLosesTheOldest holds a watcher against the list of all events and
// a position in it.
func TestSlowWatcherLosesTheOldest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		backlog := rapid.IntRange(1, 8).Draw(t, "backlog")
		var observedLost []string
		bus := lifecycle.NewBus(lifecycle.BusOptions{Backlog: backlog, Observe: func(e lifecycle.Event) {
			if e.Type == lifecycle.EventsLost {
				observedLost = append(observedLost, e.Attributes[lifecycle.AttributeCount])
			}
		}})
		w := bus.Subscribe([]string{"mine"})
		defer w.Close()
		var all []lifecycle.Event
		var toldLost []string
		position := 0
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			for range rapid.IntRange(0, 3*backlog).Draw(t, "published") {
				session := rapid.SampledFrom([]string{"mine", "other", ""}).Draw(t, "session")
				e := numbered(session, len(all))
				bus.Publish(e)
				if session != "other" {
					all = append(all, e)
				}
			}
			for range rapid.IntRange(0, 2*backlog).Draw(t, "read") {
				if position == len(all) {
					break
				}
				got := read(w, 1)[0]
				if lost := len(all) - position - backlog; lost > 0 {
					position += lost
					want := strconv.Itoa(lost)
					if got.Type != lifecycle.EventsLost || got.Attributes[lifecycle.AttributeCount] != want || !got.Time.Equal(all[position-1].Time) || got.SessionID != "" {
						t.Fatalf("got %v; want a report that %s were lost", got, want)
					}
					toldLost = append(toldLost, want)
					continue
				}
				if want := all[position]; got.Attributes[lifecycle.AttributeSummaryID] != want.Attributes[lifecycle.AttributeSummaryID] || got.Type != want.Type {
					t.Fatalf("got %v; want %v", got, want)
				}
				position++
			}
		}
		if !slices.Equal(observedLost, toldLost) {
			t.Fatalf("the observer got losses %v, the watcher %v", observedLost, toldLost)
		}
	})
}

func TestFilter(t *testing.T) {
	bus := lifecycle.NewBus(lifecycle.BusOptions{})
	two, everything := bus.Subscribe([]string{"a", "b"}), bus.Subscribe(nil)
	defer two.Close()
	defer everything.Close()
	for i, session := range []string{"a", "c", "b", "", "a"} {
		bus.Publish(numbered(session, i))
	}
	names := func(events []lifecycle.Event) (out []string) {
		for _, e := range events {
			out = append(out, e.SessionID)
		}
		return out
	}
	if got, want := names(read(two, 4)), []string{"a", "b", "", "a"}; !slices.Equal(got, want) {
		t.Errorf("the one of a and b saw %q", got)
	}
	if got, want := names(read(everything, 5)), []string{"a", "c", "b", "", "a"}; !slices.Equal(got, want) {
		t.Errorf("the one of all saw %q", got)
	}
}

// TestWatchEnds by its context and by Close, also while it waits.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := lifecycle.NewBus(lifecycle.BusOptions{})
		for name, end := range map[string]func(*lifecycle.Watcher, context.CancelFunc){
			"context": func(_ *lifecycle.Watcher, cancel context.CancelFunc) { cancel() },
			"close":   func(w *lifecycle.Watcher, _ context.CancelFunc) { w.Close(); w.Close() },
		} {
			ctx, cancel := context.WithCancel(t.Context())
			w := bus.Subscribe(nil)
			var seen []lifecycle.Event
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for e := range w.Events(ctx) {
					seen = append(seen, e)
				}
			}()
			bus.Publish(numbered("s", 1))
			synctest.Wait()
			end(w, cancel)
			<-ended
			bus.Publish(numbered("s", 2))
			for e := range w.Events(ctx) {
				t.Errorf("%s: yields %v after its end", name, e)
			}
			if len(seen) != 1 {
				t.Errorf("%s: saw %v", name, seen)
			}
			cancel()
			w.Close()
		}
	})
}

// TestManyPublishers: all watchers see one order, and each publisher's own within
// it, while others come and go.
func TestManyPublishers(t *testing.T) {
	const publishers, each = 4, 200
	bus := lifecycle.NewBus(lifecycle.BusOptions{Backlog: publishers * each})
	watchers := []*lifecycle.Watcher{bus.Subscribe(nil), bus.Subscribe(nil)}
	var group sync.WaitGroup
	for p := range publishers {
		group.Go(func() {
			for i := range each {
				bus.Publish(numbered(fmt.Sprint(p), i))
				bus.Subscribe(nil).Close()
			}
		})
	}
	var orders [2][]string
	for i, w := range watchers {
		group.Go(func() {
			defer w.Close()
			next := map[string]int{}
			for _, e := range read(w, publishers*each) {
				id := e.Attributes[lifecycle.AttributeSummaryID]
				if want := strconv.Itoa(next[e.SessionID]); id != want {
					t.Errorf("publisher %s: got event %s, want %s", e.SessionID, id, want)
				}
				next[e.SessionID]++
				orders[i] = append(orders[i], e.SessionID+"/"+id)
			}
		})
	}
	group.Wait()
	if !slices.Equal(orders[0], orders[1]) {
		t.Error("two watchers saw two orders")
	}
}

func BenchmarkPublish(b *testing.B) {
	for _, watchers := range []int{0, 1, 16} {
		b.Run(strconv.Itoa(watchers), func(b *testing.B) {
			bus := lifecycle.NewBus(lifecycle.BusOptions{})
			for range watchers {
				b.Cleanup(bus.Subscribe(nil).Close)
			}
			e := numbered("s", 1)
			b.ReportAllocs()
			for b.Loop() {
				bus.Publish(e)
			}
		})
	}
}
