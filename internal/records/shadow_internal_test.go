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
	for _, test := range []struct {
		from, to eventlog.Seq
		found    int
	}{{9, 9, 1}, {0, 20, 1}, {0, 8, 0}, {10, 20, 0}} {
		got, err := Shadows(t.Context(), store, "s", test.from, test.to)
		if err != nil || len(got) != test.found || test.found > 0 && got["p9-0001"] != want {
			t.Errorf("from %d to %d: %+v, %v", test.from, test.to, got, err)
		}
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
