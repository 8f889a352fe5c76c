package records

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/internal/artifact/artifacttest"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// filled is a record in which no field is zero, so that the test notices a field that is not stored.
func filled() Projection {
	var r Projection
	artifacttest.Fill(&r)
	r.PrefixHash, r.ContextHash = HashName([]byte{1, 2, 3}), HashName([]byte{4, 5, 6})
	r.Time = time.Unix(1_700_000_000, 5).UTC()
	r.Projection.Name = projection.ReachabilityGC
	r.Policy, r.Texts = r.Projection.PolicyName(), ""
	r.Before.Freed[toolResults], r.After.Freed[toolResults] = 153, 33
	r.Tiers = map[budget.Tier]uint64{}
	for i, tier := range budget.Tiers() {
		r.Tiers[tier] = uint64(i + 1)
	}
	// Lists are in order, and caps are a tier's in both maps.
	r.Kept = eventlog.Ranges{{From: 1, To: 1}, {From: 3, To: 9}}
	r.Dropped = eventlog.Ranges{{From: 2, To: 2}}
	r.Redacted = eventlog.Ranges{{From: 10, To: 12}}
	r.Pointers = Pointers{
		{Seq: 10, Block: 0, Kind: 1, Reducer: "a", Reason: "x", Reclaimed: 300},
		{Seq: 10, Block: 2, Kind: 2, Reducer: "b", Reason: "y", Reclaimed: 1},
		{Seq: 12, Block: 0, Kind: 1, Reducer: "a", Reason: "x", Reclaimed: 5},
	}
	return r
}

func TestStoredRecordKeepsEveryField(t *testing.T) {
	ctx := t.Context()
	store := memlog.New()
	if _, err := store.CreateSession(ctx, eventlog.Session{ID: "s", CreateTime: time.Unix(0, 0)}); err != nil {
		t.Fatal(err)
	}
	want := filled()
	m, err := want.stored()
	if err != nil {
		t.Fatal(err)
	}
	artifacttest.Golden(t, "projection", m)
	if err := putTexts(ctx, store, "s", 0, want.Projection); err != nil {
		t.Fatal(err)
	}
	value, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	got, err := projectionFrom(eventlog.Artifact{Kind: projectionKind, Seq: want.AsOf, ID: want.ID, Value: value})
	if err != nil {
		t.Fatal(err)
	}
	if got.Projection.Scratchpad != "" {
		t.Error("the caller's texts are in the record")
	}
	if err := got.LoadTexts(ctx, store, "s"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Projection{}, "Texts"), cmpopts.IgnoreUnexported(projection.Options{})); diff != "" {
		t.Error(diff)
	}
}

func TestStoredRecordsThatAreRefused(t *testing.T) {
	encode := func(m proto.Message) []byte {
		data, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for name, test := range map[string]struct {
		value []byte
		want  string
	}{
		"a newer version": {
			encode(&storagev1.Projection{Version: 2}),
			"projection p1-0001 has version 2 and this contextd reads up to 1: run the newer contextd that wrote it",
		},
		"JSON of an earlier build": {
			[]byte(`{"Version":1}`),
			"projection p1-0001 was written before version 1 of its format: delete the session, or export it with the contextd that wrote it and import it again",
		},
		"a list that ends early": {
			encode(&storagev1.Projection{Version: 1, Kept: []uint64{1}}),
			"projection p1-0001 is corrupt: a list of places ends early",
		},
		"a run that ends before it begins": {
			encode(&storagev1.Projection{Version: 1, Kept: []uint64{5, ^uint64(0)}}),
			"projection p1-0001 is corrupt: a run of events ends before it begins",
		},
		"a pointer without an edit": {
			encode(&storagev1.Projection{Version: 1, Pointers: []uint64{1, 0, 0, 0}}),
			"projection p1-0001 is corrupt: a pointer names no edit",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := projectionFrom(eventlog.Artifact{Kind: projectionKind, Seq: 1, ID: "p1-0001", Value: test.value})
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v; want %s", err, test.want)
			}
		})
	}
}

func TestStoredEntriesKeepEveryField(t *testing.T) {
	ctx := t.Context()
	store := memlog.New()
	if _, err := store.CreateSession(ctx, eventlog.Session{ID: "s", CreateTime: time.Unix(0, 0)}); err != nil {
		t.Fatal(err)
	}
	r := filled()
	entries, err := r.entries()
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]proto.Message{"decisions": &storagev1.Decisions{}, "entry": &storagev1.ProjectionEntry{}} {
		a := entries[slices.Index([]string{"decisions", "entry"}, name)]
		if err := proto.Unmarshal(a.Value, m); err != nil {
			t.Fatal(err)
		}
		artifacttest.Golden(t, name, m)
	}
	if err := store.PutArtifacts(ctx, "s", entries...); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{streamKind(r.Stream()), keyKind(KeyedProjection, r.IdempotencyKey)} {
		if id, err := find(ctx, store, "s", kind, r.AsOf); id != r.ID || err != nil {
			t.Errorf("%s finds %q (%v)", kind, id, err)
		}
		if id, err := find(ctx, store, "s", kind, r.AsOf-1); id != "" || err != nil {
			t.Errorf("%s finds %q before it was recorded (%v)", kind, id, err)
		}
	}
	log := reduce.NewConversation(budget.NewGauge(budget.Heuristic{}))
	log.Append(eventlog.Event{Seq: r.AsOf, Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: "x"}}}})
	got, err := DecisionsAt(ctx, store, "s", r.Fingerprint, log)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Decisions{Reduction: r.After, Shown: r.ShownAfter}, got); diff != "" {
		t.Error(diff)
	}
}

func TestStoredCallKeepsEveryField(t *testing.T) {
	var want ModelCall
	artifacttest.Fill(&want)
	want.Time, want.IdempotencyKey = time.Unix(1_700_000_000, 5).UTC(), "" // it is found by the key
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
