package logtest

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
)

// contested is a store with other writers, which come before every third of its writes.
type contested struct {
	eventlog.Store
	writes atomic.Int64
}

func newContested(testing.TB) eventlog.Store { return &contested{Store: memlog.New()} }

func (s *contested) Capabilities() eventlog.Capabilities { return eventlog.Capabilities{} }

// lose fails every third write, but for that of an artifact which may not be replaced: where
// it is there, that is the conflict which stays.
func (s *contested) lose(id, what string, put ...eventlog.Artifact) error {
	fixed := slices.ContainsFunc(put, func(a eventlog.Artifact) bool { return a.New })
	if lost := s.Healthy() == nil && !fixed && s.writes.Add(1)%3 == 1; !lost {
		return nil
	}
	return &eventlog.ConflictError{Session: id, What: what}
}

func (s *contested) CreateSession(ctx context.Context, from eventlog.Session) (eventlog.Session, error) {
	if err := s.lose(from.ID, "its creation"); err != nil {
		return eventlog.Session{}, err
	}
	return s.Store.CreateSession(ctx, from)
}

func (s *contested) Append(ctx context.Context, id string, b eventlog.Batch) (eventlog.Commit, error) {
	if err := s.lose(id, "the batch", b.Artifacts...); err != nil {
		return nil, err
	}
	return s.Store.Append(ctx, id, b)
}

func (s *contested) PutArtifacts(ctx context.Context, id string, all ...eventlog.Artifact) error {
	if err := s.lose(id, "the artifacts", all...); err != nil {
		return err
	}
	return s.Store.PutArtifacts(ctx, id, all...)
}

// TestManyWriters: a store that loses against others passes the suite, but for what needs
// one writer.
func TestManyWriters(t *testing.T) { Run(t, newContested) }

func TestModelOfManyWriters(t *testing.T) { RunModel(t, newContested) }

// outcome is a test that keeps how it ended.
type outcome struct {
	trial
	skipped atomic.Bool
}

func (o *outcome) Skipf(string, ...any) { o.skipped.Store(true); o.FailNow() }

func held(t *testing.T, c testCase) (failed, skipped bool) {
	t.Helper()
	o := &outcome{trial: trial{TB: t}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.hold(o, newContested, options{})
	}()
	<-done
	return o.failed.Load() && !o.skipped.Load(), o.skipped.Load()
}

// TestExceptions: what a store does not state it may not do either.
func TestExceptions(t *testing.T) {
	run := func(h *harness) {
		_, err := h.tryAppend("s", eventlog.Batch{Events: []eventlog.Event{Say("a")}})
		h.ok(err)
	}
	for _, c := range []struct {
		name            string
		needs           *capability
		failed, skipped bool
	}{
		{"needs nothing", nil, false, false},
		{"passes without what it needs", needsChain, true, false},
		{"fails without what it needs", needsOne, false, true},
	} {
		failed, skipped := held(t, testCase{name: c.name, run: run, needs: c.needs})
		if failed != c.failed || skipped != c.skipped {
			t.Errorf("%s: failed %v, skipped %v", c.name, failed, skipped)
		}
	}
	needy := 0
	for _, c := range slices.Concat(chainCases, deleteCases, concurrencyCases) {
		if c.needs != nil {
			needy++
		}
	}
	if needy < 4 {
		t.Errorf("%d cases need a capability", needy)
	}
}
