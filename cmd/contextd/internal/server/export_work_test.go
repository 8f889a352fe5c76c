package server_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/contextd/contextd/cmd/contextd/internal/server"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/memory"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// exportingStore records, during each read, how much memory calls have taken.
type exportingStore struct {
	eventlog.Store
	work *memory.Budget
	most int64
}

func (s *exportingStore) Read(ctx context.Context, id string, from, to eventlog.Seq) iter.Seq2[eventlog.Event, error] {
	s.most = max(s.most, s.work.Used())
	return s.Store.Read(ctx, id, from, to)
}

// TestExportIsWork: an export takes memory for each event of the session and of its subagents', however short it is,
// and gives it back.
func TestExportIsWork(t *testing.T) {
	store := &exportingStore{Store: stores["memory"](t), work: memory.NewBudget("work_memory", 64<<20, time.Second)}
	a := serve(t, store, func(o *server.Options) { o.Work = store.work })
	const events = 4_000
	for _, id := range []string{"s", "s/agent-1"} {
		batch := eventlog.Batch{}
		for i := range events {
			batch.Events = append(batch.Events, eventlog.Event{ID: fmt.Sprint(i), Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: "x"}}}})
		}
		if id != "s" {
			if _, err := store.CreateSession(t.Context(), eventlog.Session{ID: id, Labels: map[string]string{"harness.parent_session": "s"}}); err != nil {
				t.Fatal(err)
			}
		}
		commit, err := store.Append(t.Context(), id, batch)
		if err == nil {
			_, err = commit.Wait(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	stream, err := a.transcripts.ExportTranscript(t.Context(), &contextdv1.ExportTranscriptRequest{SessionId: "s", Harness: "claude"})
	for err == nil {
		_, err = stream.Recv()
	}
	if least := int64(2 * events * 1_000); store.most < least {
		t.Errorf("%d bytes were taken to export 2 sessions of %d events (%v)", store.most, events, err)
	}
	if store.work.Used() != 0 {
		t.Errorf("%d bytes are kept", store.work.Used())
	}
}
