package summarize_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/artifact"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/summarize"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

func TestSummariesComeBack(t *testing.T) {
	store := sessions(t, "s")
	text := rapid.StringOf(rapid.Rune())
	var all []summarize.Summary
	rapid.Check(t, func(t *rapid.T) {
		to := eventlog.Seq(len(all) + 1)
		s := summarize.Summary{
			From: eventlog.Seq(rapid.Uint64Range(1, uint64(to)).Draw(t, "from")), To: to,
			Text: text.Draw(t, "text"), Ledger: text.Draw(t, "ledger"), Index: text.Draw(t, "index"),
			Summarizer: text.Draw(t, "summarizer"), Model: text.Draw(t, "model"), Instructions: text.Draw(t, "instructions"), Extends: text.Draw(t, "extends"),
			InputTokens: rapid.Uint64().Draw(t, "in"), OutputTokens: rapid.Uint64().Draw(t, "out"),
			Time: time.Unix(rapid.Int64Range(0, 1<<35).Draw(t, "time"), 123456789).UTC(), Version: rapid.Uint32().Draw(t, "version"),
		}
		s.ID = summarize.SummaryID(s.From, s.To, s.Summarizer, s.Instructions)
		if err := summarize.Put(t.Context(), store, "s", 0, s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	})
	slices.Reverse(all)
	for i, last := range append([]summarize.Summary{{}}, all...) {
		got, err := logtest.Collect(summarize.NewestFirst(t.Context(), store, "s", last.To, last.ID))
		if want := all[i:]; err != nil || !slices.Equal(got, want) {
			t.Fatalf("after %d: %d summaries of %d, %v", i, len(got), len(want), err)
		}
	}
	var missing *eventlog.NotFoundError
	if _, err := logtest.Collect(summarize.NewestFirst(t.Context(), store, "nobody", 0, "")); !errors.As(err, &missing) {
		t.Error(err)
	}
}

func TestSummaryIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{
		summarize.SummaryID(1, 12, "a", "b"), summarize.SummaryID(2, 12, "a", "b"), summarize.SummaryID(1, 2, "a", "b"),
		summarize.SummaryID(1, 12, "ab", ""), summarize.SummaryID(1, 12, "", "ab"),
	} {
		if seen[id] {
			t.Errorf("%s is used for two", id)
		}
		seen[id] = true
	}
	// It is stored: a change makes every summary there is unknown to its work.
	if got := summarize.SummaryID(1, 12, "a", "b"); got != "s12-ec5ff82e" {
		t.Errorf("the id became %s", got)
	}
}

// TestDamagedArtifacts: what cannot be read is an error, not a summary or an attempt.
func TestDamagedArtifacts(t *testing.T) {
	p := proposal("s", 5)
	for name, a := range map[string]eventlog.Artifact{
		"no message":   {Kind: summarize.ArtifactKind, Seq: 5, ID: p.SummaryID(), Value: []byte("{")},
		"another span": {Kind: summarize.ArtifactKind, Seq: 5, ID: p.SummaryID(), Value: stored(t, &storagev1.Summary{Version: 1, From: 1, To: 4})},
		"no span":      {Kind: summarize.ArtifactKind, Seq: 5, ID: p.SummaryID(), Value: stored(t, &storagev1.Summary{Version: 1, From: 9, To: 5})},
	} {
		t.Run(name, func(t *testing.T) {
			store := sessions(t, "s")
			if err := store.PutArtifacts(t.Context(), "s", a); err != nil {
				t.Fatal(err)
			}
			var corrupt *eventlog.CorruptError
			if _, err := logtest.Collect(summarize.NewestFirst(t.Context(), store, "s", 0, "")); !errors.As(err, &corrupt) {
				t.Error(err)
			}
			w := start(t, store, &asked{answer: writes}, summarize.Options{})
			if _, err := w.Do(t.Context(), p); !errors.As(err, &corrupt) || w.backend.times() != 0 {
				t.Error(err)
			}
		})
	}
}

func stored(t testing.TB, m *storagev1.Summary) []byte {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func FuzzLoad(f *testing.F) {
	f.Add(stored(f, &storagev1.Summary{Version: 1, From: 1, To: 5, Text: "x", Summarizer: "a", TimeSeconds: 1_700_000_000, Rules: 1}))
	f.Add(stored(f, &storagev1.Summary{Version: 1, To: 5}))
	f.Add(stored(f, &storagev1.Summary{Version: 2, From: 1, To: 5}))
	f.Add([]byte(`{"from":1,"to":5}`))
	store := memStore(f)
	f.Fuzz(func(t *testing.T, value []byte) {
		if err := store.PutArtifacts(t.Context(), "s", eventlog.Artifact{Kind: summarize.ArtifactKind, Seq: 5, ID: "x", Value: value}); err != nil {
			t.Fatal(err)
		}
		all, err := logtest.Collect(summarize.NewestFirst(t.Context(), store, "s", 0, ""))
		var corrupt *eventlog.CorruptError
		var version *artifact.VersionError
		switch {
		case err != nil && !errors.As(err, &corrupt) && !errors.As(err, &version):
			t.Fatal(err)
		case err == nil && (len(all) != 1 || all[0].To != 5 || all[0].From < 1 || all[0].From > 5):
			t.Fatalf("%q was read as %+v", value, all)
		}
	})
}
