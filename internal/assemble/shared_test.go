package assemble_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
)

// shared is a store that other processes write to as well.
type shared struct{ *memlog.Store }

func (shared) Capabilities() eventlog.Capabilities { return eventlog.Capabilities{} }

// TestTwoEnginesAtOnce: two processes that assemble one session at once both answer, with the same
// bytes, and record all that they showed.
func TestTwoEnginesAtOnce(t *testing.T) {
	store := shared{memlog.New()}
	push(t, store, "s", opening()...)
	fill(t, store, 60)
	engines := []*assemble.Engine{newEngine(t, store), newEngine(t, store)}
	const rounds = 20
	var wg sync.WaitGroup
	shown := make([][rounds]string, len(engines))
	for n, e := range engines {
		wg.Go(func() {
			for i := range rounds {
				made, err := e.Assemble(t.Context(), request())
				if err != nil {
					t.Errorf("context %d of process %d: %v", i, n, err)
					return
				}
				shown[n][i] = lines(made.Messages)
			}
		})
	}
	wg.Wait()
	if shown[0] != shown[1] {
		t.Error("the two do not show the same")
	}
	records := map[string]bool{}
	for a, err := range store.Artifacts(t.Context(), "s", eventlog.ArtifactQuery{Kind: "projection"}) {
		if err != nil {
			t.Fatal(err)
		}
		records[fmt.Sprint(a.Seq, a.ID)] = true
	}
	if len(records) != len(engines)*rounds {
		t.Errorf("%d records of %d contexts", len(records), len(engines)*rounds)
	}
}
