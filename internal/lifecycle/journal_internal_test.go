package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/internal/artifact/artifacttest"
	eventlog "github.com/contextd/contextd/internal/log"
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
