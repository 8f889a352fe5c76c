package records

import (
	"testing"

	"github.com/contextd/contextd/internal/artifact"
	"github.com/contextd/contextd/internal/artifact/artifacttest"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

func TestStoredShadowKeepsEveryField(t *testing.T) {
	var want Shadow
	artifacttest.Fill(&want)
	a, err := ShadowArtifact(9, "p9-0001", want)
	if err != nil {
		t.Fatal(err)
	}
	m := &storagev1.Shadow{}
	if err := artifact.Decode(a, m, shadowVersion); err != nil {
		t.Fatal(err)
	}
	artifacttest.Golden(t, "shadow", m)
	store := memlog.New()
	if _, err := store.CreateSession(t.Context(), eventlog.Session{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	if err := store.PutArtifacts(t.Context(), "s", a); err != nil {
		t.Fatal(err)
	}
	for asOf, ids := range map[eventlog.Seq][]string{9: {"p9-0000", "p9-0001", "p9-0002"}, 8: {"p8-0001"}, 10: {"p10-0001"}} {
		for _, id := range ids {
			got, err := ShadowOf(t.Context(), store, "s", asOf, id)
			if found := id == "p9-0001"; err != nil || found != (got != nil) || found && *got != want {
				t.Errorf("%s: %+v, %v", id, got, err)
			}
		}
	}
	all := []Projection{{AsOf: 8, ID: "p8-0001"}, {AsOf: 9, ID: "p9-0000"}, {AsOf: 9, ID: "p9-0001"}, {AsOf: 9, ID: "p9-0002"}, {AsOf: 10, ID: "p10-0001"}}
	for first := range len(all) + 1 { // none for the last
		after := ""
		if first > 0 {
			after = all[first-1].ID
		}
		of, stop := Shadows(t.Context(), store, "s", after)
		for _, r := range all[first:] {
			got, err := of(r)
			if found := r.ID == "p9-0001"; err != nil || found != (got != nil) || found && *got != want {
				t.Errorf("%s, from projection %d: %+v, %v", r.ID, first, got, err)
			}
		}
		stop()
	}
}

// Shadows share what belongs to the session, but not the artifacts that decide contexts.
func TestKindsOfShadows(t *testing.T) {
	for kind, want := range map[string]string{
		projectionKind: "shadow/projection", decisionsKind("f"): "shadow/decisions/f", streamKind("f/contextd"): "shadow/projection_of_stream/f/contextd",
		digestKind("f"): "shadow/digest/f", checkpointKind("f"): "shadow/checkpoint/f",
		namesKind: namesKind, callKind: callKind, textsKind: textsKind, keyKind(KeyedProjection, "k"): keyKind(KeyedProjection, "k"), keyKind(KeyedCall, "k"): keyKind(KeyedCall, "k"), shadowKind: shadowKind, "summary": "summary",
	} {
		if got := ShadowKind(kind); got != want {
			t.Errorf("%s is %s; want %s", kind, got, want)
		}
	}
}
