package harness

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/internal/artifact"
	"github.com/contextd/contextd/internal/artifact/artifacttest"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// logged is a store whose session has events with the ids.
func logged(t *testing.T, ids ...string) (eventlog.Store, []eventlog.Event, map[string]eventlog.Seq) {
	t.Helper()
	store := memlog.New()
	var events []eventlog.Event
	seqs := map[string]eventlog.Seq{}
	for i, id := range ids {
		events = append(events, eventlog.Event{ID: id, Body: &eventlog.Custom{Type: "x"}})
		seqs[id] = eventlog.Seq(i + 1)
	}
	commit, err := store.Append(t.Context(), "s", eventlog.Batch{Events: events})
	if err == nil {
		_, err = commit.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return store, events, seqs
}

func TestStoredEnvelopeKeepsEveryField(t *testing.T) {
	var want Envelope
	artifacttest.Fill(&want)
	all := storedEnvelope(want)
	all[0].Continues = true
	artifacttest.Golden(t, "transcript_envelope", all[0])
	store, events, seqs := logged(t, "other", want.Event)
	if err := PutEnvelopes(t.Context(), store, "s", 0, []Envelope{want}, seqs, false); err != nil {
		t.Fatal(err)
	}
	got, err := Envelopes(t.Context(), store, "s", events)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Envelope{want}, got); diff != "" {
		t.Error(diff)
	}
}

// counted counts the artifacts that are put.
type counted struct {
	eventlog.Store
	puts int
}

func (c *counted) PutArtifacts(ctx context.Context, id string, all ...eventlog.Artifact) error {
	c.puts += len(all)
	return c.Store.PutArtifacts(ctx, id, all...)
}

// TestEnvelopes: envelopes of any length are read as they were stored; an equal one is not written again, and
// another one for the same event and part replaces it.
func TestEnvelopes(t *testing.T) {
	store, events, seqs := logged(t, "a", "b", "c")
	counting := &counted{Store: store}
	long := strings.Repeat("é", maxEnvelope)
	first := []Envelope{
		{Harness: "claude", Difference: "session"},
		{Harness: "claude", Event: "a", Difference: long},
		{Harness: "claude", Event: "a", Part: "summary", Difference: "{}"},
		{Harness: "codex", Event: "a", Difference: "other"},
		{Harness: "claude", Event: "c", Difference: ""},
	}
	put := func(puts int, all ...Envelope) {
		t.Helper()
		before := counting.puts
		if err := PutEnvelopes(t.Context(), counting, "s", 0, all, seqs, before > 0); err != nil {
			t.Fatal(err)
		}
		if n := counting.puts - before; n != puts {
			t.Errorf("%d artifacts were put, want %d", n, puts)
		}
	}
	read := func(id string, events []eventlog.Event, want ...Envelope) {
		t.Helper()
		got, err := Envelopes(t.Context(), store, id, events)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("read %d envelopes, %v; want %d", len(got), err, len(want))
		}
	}
	put(6, first...)
	read("s", events, first...)
	put(0, first...)
	put(0)
	put(0, first[0])
	put(1, first[0], Envelope{Harness: "codex", Event: "a", Difference: "else"})
	short := Envelope{Harness: "claude", Event: "a", Difference: "short"}
	put(1, short)
	first[1], first[3].Difference = short, "else"
	read("s", events, first...)
	if _, err := store.Fork(t.Context(), eventlog.ForkRequest{ParentID: "s", NewID: "f", At: 2}); err != nil {
		t.Fatal(err)
	}
	read("f", events[:2], first[:4]...)
	if n, err := EnvelopeBytes(t.Context(), store, "f"); err != nil || n < maxEnvelope {
		t.Errorf("%d bytes are stored, %v", n, err)
	}

	other := &storagev1.TranscriptEnvelope{Version: envelopeVersion + 1}
	value, err := proto.Marshal(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.PutArtifacts(t.Context(), "s", eventlog.Artifact{Kind: EnvelopeKind, Seq: 2, ID: "x" + firstEnvelope, Value: value}); err != nil {
		t.Fatal(err)
	}
	var version *artifact.VersionError
	if _, err := Envelopes(t.Context(), store, "s", events); !errors.As(err, &version) {
		t.Errorf("of an unknown version: %v", err)
	}
	var missing *eventlog.NotFoundError
	if err := PutEnvelopes(t.Context(), store, "s", 99, first, seqs, false); !errors.As(err, &missing) {
		t.Errorf("of another incarnation: %v", err)
	}
}
