package records

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/internal/artifact/artifacttest"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/reduce"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

func TestStoredCheckpointKeepsEveryField(t *testing.T) {
	want := reduce.Checkpoint{
		AsOf: 900, Sum: [32]byte{1, 2}, Gauge: "o200k_base", Turns: 400, Tokens: 123_456, Chars: 500_000,
		Call: time.Unix(1_700_000_000, 5).UTC(), Newest: time.Unix(1_700_000_001, 6).UTC(),
		Groups: 300, Messages: 650, Calls: 310, RawTokens: 100_000, Through: 700, Turn: 299, Changed: 701, Opens: 2,
		Events: eventlog.Ranges{{From: 1, To: 3}, {From: 5, To: 900}}, Shown: eventlog.Ranges{{From: 1, To: 2}, {From: 701, To: 900}},
		ShownSum: [32]byte{3, 4}, Before: 2, Stay: []eventlog.Seq{650},
		Dropped:   []reduce.DroppedGroup{{First: 3, Last: 640, Tokens: 90_000}, {First: 641, Last: 642, Tokens: 7}},
		OpenCalls: []string{"call_7", "\xff"}, Names: []uint32{1, 1 << 31}, FileTokens: 77, AllFiles: true,
	}
	a, err := CheckpointArtifact("f", want)
	if err != nil {
		t.Fatal(err)
	}
	m := &storagev1.Checkpoint{}
	if err := proto.Unmarshal(a.Value, m); err != nil {
		t.Fatal(err)
	}
	artifacttest.Golden(t, "checkpoint", m)
	got, ok := checkpointFrom(a)
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("%t (-want +got):\n%s", ok, diff)
	}
}

// A checkpoint that cannot be decoded counts as missing: the whole log is read instead.
func TestCheckpointsThatCannotBeRead(t *testing.T) {
	for name, m := range map[string]*storagev1.Checkpoint{
		"a newer version":        {Version: 2},
		"no sum":                 {Version: 1, ShownSum: make([]byte, 32)},
		"a list that ends early": {Version: 1, DependsOn: make([]byte, 32), ShownSum: make([]byte, 32), Events: []uint64{1}},
	} {
		value, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := checkpointFrom(eventlog.Artifact{Kind: checkpointKind("f"), Seq: 1, ID: newestID, Value: value}); ok {
			t.Errorf("%s is read", name)
		}
	}
}

// Names are found in the stored stretches; a missing stretch is reported.
func TestNames(t *testing.T) {
	ctx, store := t.Context(), memlog.New()
	if _, err := store.CreateSession(ctx, eventlog.Session{ID: "s", CreateTime: time.Unix(0, 0)}); err != nil {
		t.Fatal(err)
	}
	put := func(seq eventlog.Seq, hashes ...uint32) {
		value, err := proto.Marshal(&storagev1.Names{Version: namesVersion, Hashes: hashes})
		if err != nil {
			t.Fatal(err)
		}
		artifacttest.Golden(t, "names", &storagev1.Names{Version: namesVersion, Hashes: []uint32{1, 1 << 31}})
		if err := store.PutArtifacts(ctx, "s", eventlog.Artifact{Kind: namesKind, Seq: seq, ID: newestID, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	put(4096, 3, 9)
	if _, ok, err := NamesUpTo(ctx, store, "s", 9000); ok || err != nil {
		t.Errorf("a stretch is missing: %t, %v", ok, err)
	}
	put(8192, 5)
	used, ok, err := NamesUpTo(ctx, store, "s", 9000)
	if !ok || err != nil || !used(9) || !used(5) || used(4) {
		t.Errorf("%t, %v", ok, err)
	}
}
