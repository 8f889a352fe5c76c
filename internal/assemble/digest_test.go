package assemble_test

import (
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
)

// digestsKept are the artifacts of a session's digests under a fingerprint, oldest first.
func digestsKept(t *testing.T, store eventlog.Store, fingerprint string) (all []eventlog.Artifact) {
	t.Helper()
	for a, err := range store.Artifacts(t.Context(), "s", eventlog.ArtifactQuery{Kind: "digest/" + fingerprint}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

// TestDigestsAreKept checks that a digest is stored with the record that shows it first and never again,
// that an engine shows it after a start, and that a replay computes the same digest.
func TestDigestsAreKept(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	push(t, store, "s", opening()...)
	engine := newEngine(t, store)
	var texts []string // of digests, as they were shown
	for i := range 60 {
		push(t, store, "s", turn(i)...)
		if i%7 == 6 {
			engine = newEngine(t, store)
		}
		made := mustAssemble(t, engine, request())
		digest := ""
		for _, m := range made.Messages {
			if strings.Contains(string(m.JSON), "earlier messages left the context") {
				digest = string(m.JSON)
			}
		}
		if digest != "" && (len(texts) == 0 || texts[len(texts)-1] != digest) {
			texts = append(texts, digest)
		}
		kept := digestsKept(t, store, made.Projection.Fingerprint)
		if len(kept) != len(texts) {
			t.Fatalf("turn %d: %d digests were shown and %d are stored", i, len(texts), len(kept))
		}
		if r, err := engine.Replay(t.Context(), "s", made.Projection.ID); err != nil || !r.Same {
			t.Fatalf("turn %d: a replay gives another context: %q, %v", i, r.Difference, err)
		}
	}
	if len(texts) < 2 {
		t.Errorf("%d digests were shown", len(texts))
	}
	// What is stored is what is shown after a start.
	fingerprint := mustAssemble(t, engine, request()).Projection.Fingerprint
	kept := digestsKept(t, store, fingerprint)
	last := kept[len(kept)-1]
	changed := strings.Replace(string(last.Value), "earlier messages left", "EARLIER messages left", 1)
	last.Value = []byte(changed)
	if err := store.PutArtifacts(t.Context(), "s", last); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	for _, m := range mustAssemble(t, newEngine(t, store), request()).Messages {
		shown.Write(m.JSON)
	}
	if !strings.Contains(shown.String(), "EARLIER messages left") {
		t.Error("a start does not show the digest that is stored")
	}
	last.Value = []byte("?")
	if err := store.PutArtifacts(t.Context(), "s", last); err != nil {
		t.Fatal(err)
	}
	if got := mustAssemble(t, newEngine(t, store), request()); len(got.Messages) == 0 {
		t.Error("a digest that cannot be read is in the way")
	}
}
