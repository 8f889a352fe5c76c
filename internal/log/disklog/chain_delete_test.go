package disklog

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
)

// TestDeletionInAChain deletes sessions out of forks of forks, of which some show the same and some less: the others
// keep what they show, and what nobody shows is gone.
func TestDeletionInAChain(t *testing.T) {
	ids := []string{"s0", "x1", "x2", "x3", "y3", "s3", "s2", "s1", "y1"}
	for first := range ids {
		order := slices.Concat(ids[first:], ids[:first])
		s := openMem(t, vfs.NewMem())
		fillChain(t, s)
		left := knownOf(t, s)
		for n, id := range order {
			if err := DeleteErased(t.Context(), s, id); err != nil {
				t.Fatal(err)
			}
			delete(left, id)
			if got := knownOf(t, s); !reflect.DeepEqual(got, left) {
				t.Errorf("without %v there are %v, want %v", order[:n+1], got, left)
			}
			if err := s.scan(nil, nil, func(it *pebble.Iterator) error {
				value, err := it.ValueAndErr()
				_, isArtifact := parseArtifactKey(it.Key())
				if (isArtifact || keySeq(it.Key()) > 0 && it.Key()[9] == keyEvent) && !shownBy(left, value) || len(left) == 0 && len(value) > 0 {
					t.Errorf("without %v %s is there, which nobody shows", order[:n+1], describeKey(it.Key()))
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// fillChain makes forks s1, s2 and s3 of the session before each, and x1, x2 and x3 of the same event, for which an
// artifact was put again; and y1 and y3 of the event before.
func fillChain(t *testing.T, s *Store) {
	t.Helper()
	put := func(id, value string) {
		t.Helper()
		if err := s.PutArtifacts(t.Context(), id, eventlog.Artifact{Kind: "k", ID: "of " + id, Seq: 1, Value: []byte("value " + value)}); err != nil {
			t.Fatal(err)
		}
	}
	fork := func(parent, id string, at eventlog.Seq) {
		t.Helper()
		if _, err := s.Fork(t.Context(), eventlog.ForkRequest{ParentID: parent, NewID: id, At: at}); err != nil {
			t.Fatal(err)
		}
		add(t, s, id, logtest.Say("of "+id))
	}
	add(t, s, "s0", logtest.Say("of s0"), logtest.Say("second"))
	for n := 1; n <= 3; n++ {
		parent, at := fmt.Sprint("s", n-1), eventlog.Seq(2+(n-1)/2)
		put(parent, fmt.Sprint(n, " first"))
		fork(parent, fmt.Sprint("s", n), at)
		if n != 2 {
			fork(parent, fmt.Sprint("y", n), at-1)
		}
		put(parent, fmt.Sprint(n, " then"))
		fork(parent, fmt.Sprint("x", n), at)
		put(parent, fmt.Sprint(n, " last"))
	}
}

func shownBy(sessions map[string]known, stored []byte) bool {
	for _, k := range sessions {
		for _, shown := range append(slices.Collect(maps.Values(k.artifacts)), k.events...) {
			if bytes.Contains(stored, []byte(shown)) {
				return true
			}
		}
	}
	return false
}
