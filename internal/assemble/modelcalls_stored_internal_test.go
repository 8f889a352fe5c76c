package assemble

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/internal/artifact/artifacttest"
	eventlog "github.com/contextd/contextd/internal/log"
)

func TestStoredCallKeepsEveryField(t *testing.T) {
	var want RecordedCall
	artifacttest.Fill(&want)
	want.Time = time.Unix(1_700_000_000, 5).UTC()
	m := want.stored()
	artifacttest.Golden(t, "call", m)
	value, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeCall(want.SessionID, eventlog.Artifact{Kind: callKind, ID: callID(want.Number), Value: value})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
