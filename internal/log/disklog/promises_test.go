package disklog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logtest"
)

// check holds a store to the promises: everything acknowledged is there, nothing
// is there by half, and every log is sound.
func (p *promises) check(t *testing.T, s *disklog.Store) {
	t.Helper()
	ctx := t.Context()
	for id, want := range p.sessions {
		session, err := s.Session(ctx, id)
		var none *eventlog.NotFoundError
		if want.doomed && errors.As(err, &none) {
			continue
		}
		if err != nil {
			t.Errorf("session %s is lost: %v", id, err)
			continue
		}
		events, err := logtest.Collect(s.Read(ctx, id, 1, 0))
		if err != nil || len(events) != int(session.Head) {
			t.Errorf("session %s has head %d and %d events, %v", id, session.Head, len(events), err)
			continue
		}
		want.checkEvents(t, id, events)
		want.checkArtifacts(t, s, id)
	}
	for id := range p.deleted {
		if _, err := s.Session(ctx, id); err == nil {
			t.Errorf("session %s is back", id)
		}
	}
	all, err := s.ListSessions(ctx, eventlog.SessionQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, session := range all {
		events, err := logtest.Collect(s.Read(ctx, session.ID, 1, 0))
		if err != nil {
			t.Errorf("read %s: %v", session.ID, err)
		}
		checkWhole(t, session, events)
	}
	verifyAll(t, s)
}

func (p *promised) checkEvents(t *testing.T, id string, events []eventlog.Event) {
	t.Helper()
	at := map[string]eventlog.Seq{}
	for i, e := range events {
		if e.Seq != eventlog.Seq(i+1) {
			t.Errorf("session %s: event %d has seq %d", id, i+1, e.Seq)
		}
		at[e.ID] = e.Seq
		if i < len(p.prefix) && e.ID != p.prefix[i] {
			t.Errorf("session %s: event %d is %s, its parent's was %s", id, i+1, e.ID, p.prefix[i])
		}
	}
	if len(events) < len(p.prefix) {
		t.Errorf("session %s has %d events, its parent's part has %d", id, len(events), len(p.prefix))
	}
	for event, seq := range p.events {
		if at[event] != seq {
			t.Errorf("session %s: event %s was acknowledged at %d and is at %d", id, event, seq, at[event])
		}
	}
}

func (p *promised) checkArtifacts(t *testing.T, s *disklog.Store, id string) {
	t.Helper()
	for name, want := range p.artifacts {
		a, err := s.Artifact(t.Context(), id, "k", 0, name)
		// A newer put may have become durable without being acknowledged.
		if err != nil || len(a.Value) == 0 {
			t.Errorf("session %s: artifact %s=%s is %q, %v", id, name, want, a.Value, err)
		}
		var round, n, wantRound, wantN int
		_, _ = fmt.Sscanf(string(a.Value), "r%d-%d", &round, &n)
		_, _ = fmt.Sscanf(want, "r%d-%d", &wantRound, &wantN)
		if round < wantRound || (round == wantRound && n < wantN) {
			t.Errorf("session %s: artifact %s is %s, %s was acknowledged", id, name, a.Value, want)
		}
	}
}

// checkWhole checks that no batch is there by half, but for the one that a fork
// may have cut in two.
func checkWhole(t *testing.T, session eventlog.Session, events []eventlog.Event) {
	t.Helper()
	for i := 0; i < len(events); {
		name, place, ok := strings.Cut(events[i].ID, "/")
		var first, n int
		if _, err := fmt.Sscanf(place, "%d/%d", &first, &n); err != nil || !ok {
			t.Errorf("session %s: event %q is unknown", session.ID, events[i].ID)
			return
		}
		if first != 0 {
			t.Errorf("session %s: batch %s begins with its event %d", session.ID, name, first)
			return
		}
		for j := range n {
			cut := i+j == int(session.ForkSeq)
			if cut && j > 0 {
				n = j
				break
			}
			if i+j == len(events) || events[i+j].ID != fmt.Sprintf("%s/%d/%d", name, j, n) {
				t.Errorf("session %s: batch %s is there by half", session.ID, name)
				return
			}
		}
		i += n
	}
}
