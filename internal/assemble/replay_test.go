package assemble_test

import (
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
)

// Replays of all projections of a session, oldest first, read the log once, however many there are, and once more when
// they begin from the first. An earlier projection is the same whatever was replayed before it.
func TestReplaysReadTheLogOnce(t *testing.T) {
	for _, policy := range []string{projection.Raw, projection.HarnessView, projection.ReachabilityGC, projection.SquashFailed} {
		t.Run(policy, func(t *testing.T) {
			store := &readingStore{Store: memlog.New()}
			defer closeStore(t, store)
			live, req := newEngine(t, store), windowOf(16_384)
			req.Policy.Projection.Name = policy
			push(t, store, "s", opening()...)
			for i := range 120 {
				push(t, store, "s", turn(i)...)
				mustAssemble(t, live, req)
			}
			var ids []string
			for r, err := range records.Projections(t.Context(), store, "s", eventlog.ArtifactQuery{}) {
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, r.ID)
			}
			session, err := store.Session(t.Context(), "s")
			if err != nil {
				t.Fatal(err)
			}
			engine := newEngine(t, store)
			for range 2 {
				store.read = 0
				for _, id := range ids {
					if got, err := engine.Replay(t.Context(), "s", id); err != nil || !got.Same {
						t.Fatalf("%s: %q, %v", id, got.Difference, err)
					}
				}
				if store.read > int(session.Head) {
					t.Errorf("%d events were read to replay %d projections of %d", store.read, len(ids), session.Head)
				}
			}
			if got, err := engine.Replay(t.Context(), "s", ids[len(ids)/2]); err != nil || !got.Same {
				t.Errorf("an earlier one: %q, %v", got.Difference, err)
			}
		})
	}
}
