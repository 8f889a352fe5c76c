package lifecycle_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/contextd/contextd/internal/lifecycle"
	"github.com/contextd/contextd/internal/log/memlog"
)

// TestJournalsOfOneStore: two processes that report events of one session number them all, and each
// number is given once.
func TestJournalsOfOneStore(t *testing.T) {
	const events = 100
	store := memlog.New()
	one := journal(t, store)
	other := lifecycle.NewJournal(store, lifecycle.NewBus(lifecycle.BusOptions{}), second)
	var wg sync.WaitGroup
	for n, j := range []*lifecycle.Journal{one, other} {
		wg.Go(func() {
			for i := range events {
				e := lifecycle.Entry{SessionID: "s", Events: []lifecycle.Event{lifecycle.Happened(lifecycle.Type(fmt.Sprint(n, "-", i)))}}
				if err := j.Put(t.Context(), e); err != nil {
					t.Errorf("event %d of process %d: %v", i, n, err)
				}
			}
		})
	}
	wg.Wait()
	got := take(t, watch(t, one, []string{"s"}, lifecycle.Cursor{SessionID: "s", Incarnation: incarnationName(t, store, "s")}), 2*events)
	kinds := map[string]bool{}
	for i, line := range got {
		var number int
		var kind string
		if _, err := fmt.Sscanf(line, "s %d %s", &number, &kind); err != nil || number != i+1 {
			t.Fatalf("event %d is %q", i+1, line)
		}
		kinds[kind] = true
	}
	if len(kinds) != 2*events {
		t.Errorf("%d of %d events are kept", len(kinds), 2*events)
	}
}
