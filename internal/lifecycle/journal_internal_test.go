package lifecycle

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/internal/artifact/artifacttest"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
)

func TestStoredEventKeepsEveryField(t *testing.T) {
	var want Event
	artifacttest.Fill(&want)
	want.Time = time.Unix(1_700_000_000, 5).UTC()
	m := want.stored()
	artifacttest.Golden(t, "lifecycle_event", m)
	a := want.key(0)
	var err error
	if a.Value, err = proto.Marshal(m); err != nil {
		t.Fatal(err)
	}
	session := eventlog.Session{ID: want.SessionID, CreateTime: want.Time, Incarnation: 7}
	want.Incarnation = session.IncarnationName()
	got, err := decodeEvent(session, a)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAttributesAreBounded(t *testing.T) {
	long := strings.Repeat("ä", attributeBytes)
	got := bounded(map[string]string{"long": long, "broken": "a\xffb", "plain": "x"})
	want := map[string]string{"long": long[:attributeBytes-4] + "…", "broken": "a\uFFFDb", "plain": "x"}
	if diff := cmp.Diff(want, got); diff != "" || len(got["long"]) > attributeBytes {
		t.Error(diff)
	}
}

// reading counts the queries that the artifacts of a log's events may answer.
type reading struct {
	Store
	ofLog int
}

func (r *reading) Artifacts(ctx context.Context, id string, q eventlog.ArtifactQuery) iter.Seq2[eventlog.Artifact, error] {
	if q.From < beforeFirst {
		r.ofLog++
	}
	return r.Store.Artifacts(ctx, id, q)
}

// TestNumbersAreNotLookedForInParents: a fork shares artifacts of its log's events, among which no number is.
func TestNumbersAreNotLookedForInParents(t *testing.T) {
	store := &reading{Store: memlog.New()}
	if _, err := store.CreateSession(t.Context(), eventlog.Session{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	j := NewJournal(store, NewBus(BusOptions{}), time.Now)
	for want := range uint64(2) {
		if n, err := j.newest(t.Context(), "s"); n != want || err != nil || store.ofLog > 0 {
			t.Errorf("the newest is %d, %v; %d queries include the log's events", n, err, store.ofLog)
		}
		if err := j.Put(t.Context(), Entry{SessionID: "s", Events: []Event{{SessionID: "s", Type: "x"}}}); err != nil {
			t.Fatal(err)
		}
	}
}
