package assemble_test

import (
	"testing"

	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/reduce"
)

// A compaction reads only the events that stay, for their ids, and not the whole log.
func TestCompactionReadsWhatStays(t *testing.T) {
	store := &readingStore{Store: memlog.New()}
	defer closeStore(t, store)
	const events = 4_000
	next := fill(t, store, events)
	w := started(t, store, nil)
	c := compaction(reduce.Drop)
	c.Request.Budget.MaxTokens, c.KeepLastTurns = 100_000, 2
	for range 3 {
		push(t, store, "s", turn(next)...)
		next++
		w.assemble(c.Request)
		store.read = 0
		done := w.compacted(c)
		if done == nil {
			t.Fatal("nothing was compacted")
		}
		t.Logf("%d events were read, %d stay", store.read, len(done.Event.KeptEventIDs))
		if store.read > events/2 {
			t.Errorf("%d events of %d were read for %d that stay", store.read, events, len(done.Event.KeptEventIDs))
		}
	}
}
