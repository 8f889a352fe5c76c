package disklog

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
)

// TestArtifactsOfForksOfForks counts iterators: what reads open in the last of many forks does not grow with these.
func TestArtifactsOfForksOfForks(t *testing.T) {
	const deep = 50
	s := openMem(t, vfs.NewMem())
	t.Cleanup(func() { _ = s.Close() })
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.CreateSession(t.Context(), eventlog.Session{ID: "s0"})
	ok(err)
	for i := range deep {
		id, seq := fmt.Sprint("s", i), eventlog.Seq(i+1)
		c, err := s.Append(t.Context(), id, eventlog.Batch{Events: []eventlog.Event{logtest.Say(id)}})
		ok(err)
		_, err = c.Wait(t.Context())
		ok(err)
		ok(s.PutArtifacts(t.Context(), id, eventlog.Artifact{Kind: "k", Seq: seq, ID: id}))
		_, err = s.Fork(t.Context(), eventlog.ForkRequest{ParentID: id, NewID: fmt.Sprint("s", i+1), At: seq})
		ok(err)
	}
	sl, last, err := s.find(fmt.Sprint("s", deep))
	ok(err)
	defer s.release(sl)
	first := func(q eventlog.ArtifactQuery) (id string, links, iterators int) {
		m := artifactMerge{store: s, links: last.links, query: q}
		defer m.close()
		a, err := m.next()
		ok(err)
		if a != nil {
			id = a.ID
		}
		return id, len(last.links) - len(m.links), m.spare.made
	}
	if id, links, iterators := first(eventlog.ArtifactQuery{Kind: "k", Reverse: true}); id != fmt.Sprint("s", deep-1) || links > 2 || iterators > 1 {
		t.Errorf("the newest is %s, of %d links by %d iterators", id, links, iterators)
	}
	if id, _, iterators := first(eventlog.ArtifactQuery{Kind: "none"}); id != "" || iterators > 1 {
		t.Errorf("of a kind that is not there, %q, by %d iterators", id, iterators)
	}
	var spare spareIterator
	defer spare.close()
	if _, err := s.shown(last, &spare, "k", 1, "s0"); err != nil || spare.made > 1 {
		t.Errorf("the oldest, by %d iterators: %v", spare.made, err)
	}
}
