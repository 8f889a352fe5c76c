package assemble_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/records"
)

// No client ever receives the id of a projection that a crash then loses. Appends and records of several
// sessions share syncs.
func TestNoCrashTakesAnIDBack(t *testing.T) {
	fs := vfs.NewCrashableMem()
	store, err := disklog.Open("log", disklog.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, store)
	engine := newEngine(t, store)
	type answer struct{ session, projection string }
	answers := make(chan answer)
	const agents, turns = 3, 16
	for n := range agents {
		go func() {
			req := request()
			req.SessionID = fmt.Sprint("session-", n)
			push(t, store, req.SessionID, opening()...)
			for i := range turns {
				push(t, store, req.SessionID, turn(i)...)
				made, err := engine.Assemble(context.WithoutCancel(t.Context()), req)
				if err != nil {
					t.Error(err)
					made = &assemble.Context{}
				}
				answers <- answer{req.SessionID, made.Projection.ID}
			}
		}()
	}
	var known []answer
	random := rand.New(rand.NewPCG(1, 2))
	for range agents * turns {
		if known = append(known, <-answers); len(known)%8 != 0 {
			continue
		}
		// The agents go on meanwhile.
		crashed, err := disklog.Open("log", disklog.Options{FS: fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * (len(known) / 8 % 2), RNG: random})})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range known {
			if r, err := records.Get(t.Context(), crashed, a.session, a.projection); err != nil || r.ID != a.projection {
				t.Errorf("after a crash session %s has no %s: %v", a.session, a.projection, err)
			}
		}
		closeStore(t, crashed)
	}
}
