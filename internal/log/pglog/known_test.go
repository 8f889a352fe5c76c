package pglog_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/pglog"
)

// inCalls is a store whose reads come after another of the same call, so that they may be answered by what is
// remembered.
type inCalls struct{ eventlog.Store }

func (s inCalls) looked(ctx context.Context, id string) context.Context {
	ctx = eventlog.OneCall(ctx)
	_, _ = s.Store.Session(ctx, id) // the read itself returns why it is not there
	return ctx
}

func (s inCalls) Session(ctx context.Context, id string) (eventlog.Session, error) {
	return s.Store.Session(s.looked(ctx, id), id)
}

func (s inCalls) Read(ctx context.Context, id string, from, to eventlog.Seq) iter.Seq2[eventlog.Event, error] {
	return s.Store.Read(s.looked(ctx, id), id, from, to)
}

func (s inCalls) Artifact(ctx context.Context, id, kind string, seq eventlog.Seq, artifactID string) (eventlog.Artifact, error) {
	return s.Store.Artifact(s.looked(ctx, id), id, kind, seq, artifactID)
}

func (s inCalls) Artifacts(ctx context.Context, id string, q eventlog.ArtifactQuery) iter.Seq2[eventlog.Artifact, error] {
	return s.Store.Artifacts(s.looked(ctx, id), id, q)
}

// TestRemembered: what a process remembers of a session is what is stored, whoever wrote last, and whatever
// is asked.
func TestRemembered(t *testing.T) {
	needServer(t)
	dsn := server.Schema(t)
	stores := []*pglog.Store{open(t, dsn, pglog.Options{}), open(t, dsn, pglog.Options{})}
	for _, s := range stores {
		t.Cleanup(func() { closeStore(t, s) })
	}
	rng := rand.New(rand.NewPCG(1, 18))
	ids := []string{"s", "f"}
	if _, err := appendTo(t, stores[0], "s", logtest.Say("first")); err != nil {
		t.Fatal(err)
	}
	if _, err := stores[0].Fork(t.Context(), eventlog.ForkRequest{ParentID: "s", At: 1, NewID: "f"}); err != nil {
		t.Fatal(err)
	}
	for step := range 400 {
		writer, reader, id := stores[rng.IntN(2)], stores[rng.IntN(2)], ids[rng.IntN(2)]
		kind, seq, name := fmt.Sprint("k", rng.IntN(2)), eventlog.Seq(rng.IntN(30)), fmt.Sprint("i", rng.IntN(2))
		var err error
		switch rng.IntN(4) {
		case 0:
			_, err = appendTo(t, writer, id, logtest.Say(fmt.Sprintf("%d", step)))
		case 1:
			a := eventlog.Artifact{Kind: kind, Seq: seq, ID: name, New: true}
			if err = writer.PutArtifacts(t.Context(), id, a); err != nil {
				if _, there := writer.Artifact(t.Context(), id, kind, seq, name); there == nil {
					err = nil
				}
			}
		default:
			err = writer.PutArtifacts(t.Context(), id, eventlog.Artifact{Kind: kind, Seq: seq, ID: name, Value: make([]byte, rng.IntN(20_000))})
		}
		if err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		q := eventlog.ArtifactQuery{Kind: kind, From: eventlog.Seq(rng.IntN(20)), To: eventlog.Seq(rng.IntN(30)), Reverse: rng.IntN(2) == 0}
		if rng.IntN(2) == 0 {
			q.After = &eventlog.Artifact{Seq: eventlog.Seq(rng.IntN(30)), ID: "i0"}
		}
		from, to := eventlog.Seq(rng.IntN(60)), eventlog.Seq(rng.IntN(60))
		read := func(s eventlog.Store) (all []any) {
			artifacts, err := logtest.Collect(s.Artifacts(t.Context(), id, q))
			all = append(all, artifacts, err)
			for name := range 3 {
				a, err := s.Artifact(t.Context(), id, kind, seq, fmt.Sprint("i", name))
				all = append(all, a, err)
			}
			events, err := logtest.Collect(s.Read(t.Context(), id, from, to))
			info, missing := s.Session(t.Context(), id)
			return append(all, events, err, info, missing)
		}
		if got, want := read(inCalls{reader}), read(reader); !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d, %s, %+v, %d..%d: what is remembered is not what is stored:\n%.2000v\nstored\n%.2000v", step, id, q, from, to, fmt.Sprint(got), fmt.Sprint(want))
		}
	}
	for _, id := range ids {
		if err := stores[0].Verify(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
}
