package summarize

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/internal/artifact/artifacttest"
	eventlog "github.com/contextd/contextd/internal/log"
)

func TestStoredSummaryKeepsEveryField(t *testing.T) {
	var want Summary
	artifacttest.Fill(&want)
	want.From, want.To, want.Time = 3, 40, time.Unix(1_700_000_000, 5).UTC()
	m := want.stored()
	artifacttest.Golden(t, "summary", m)
	value, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeSummary(eventlog.Artifact{Kind: ArtifactKind, Seq: want.To, ID: want.ID, Value: value})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestStoredTaskKeepsEveryField(t *testing.T) {
	var want task
	artifacttest.Fill(&want)
	want.Status, want.Proposal.Of = done, 0 // the incarnation is that of the session it is found in
	m := want.stored()
	artifacttest.Golden(t, "summary_task", m)
	value, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeTask(want.Proposal.SessionID, eventlog.Artifact{Kind: TaskKind, Value: value})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
