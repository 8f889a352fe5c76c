package logtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
)

// RunModel does the same random operations on a store and on memlog, and compares all results.
func RunModel(t *testing.T, open Opener, opts ...Option) {
	t.Helper()
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	rapid.Check(t, func(rt *rapid.T) {
		m := &machine{
			T: rt, outer: t, ctx: t.Context(), o: o,
			model: memlog.New(), real: calm(open(t)), heads: map[string]eventlog.Head{},
		}
		defer func() {
			if err := m.real.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
		actions := m.writes()
		actions["read"], actions["artifacts"], actions["list"], actions["reopen"] = m.read, m.artifacts, m.list, m.reopen
		rt.Repeat(actions)
		m.compareAll()
	})
}

// Fill does random writes, including deletions.
func Fill(rt *rapid.T, s eventlog.Store) {
	m := &machine{T: rt, ctx: context.Background(), model: memlog.New(), real: calm(s), heads: map[string]eventlog.Head{}}
	rt.Repeat(m.writes())
}

func (m *machine) writes() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"append": m.append, "append2": m.append, "repeat": m.repeat,
		"create": m.create, "fork": m.fork, "delete": m.delete,
		"put": m.put, "put2": m.put,
	}
}

// machine drives both stores.
type machine struct {
	*rapid.T
	outer testing.TB
	ctx   context.Context
	o     options
	model eventlog.Store
	real  eventlog.Store
	// heads are the heads of the logs, for the generators.
	heads map[string]eventlog.Head
	// appended are earlier events, to append again.
	appended []eventlog.Event
	counter  int
}

var names = rapid.SampledFrom([]string{"a", "b", "c", "d"})

// both does an operation on both stores and compares the results.
func both[T any](m *machine, what string, f func(s eventlog.Store) (T, error)) (T, error) {
	want, wantErr := f(m.model)
	got, gotErr := f(m.real)
	if fmt.Sprintf("%T %v", wantErr, wantErr) != fmt.Sprintf("%T %v", gotErr, gotErr) {
		m.Fatalf("%s: the model fails with %T %v, the store with %T %v", what, wantErr, wantErr, gotErr, gotErr)
	}
	if diff := Diff(want, got); diff != "" {
		m.Fatalf("%s (-model +store):\n%s", what, diff)
	}
	return want, wantErr
}

func (m *machine) now() time.Time { return epoch.Add(time.Duration(m.counter) * time.Second) }

func (m *machine) append(t *rapid.T) {
	id := names.Draw(t, "session")
	head := m.heads[id]
	b := eventlog.Batch{Time: m.now()}
	at := head
	for range rapid.IntRange(1, 4).Draw(t, "events") {
		m.counter++
		e := GenEvent(at, fmt.Sprintf("e%d", m.counter)).Draw(t, "event")
		if rapid.IntRange(0, 9).Draw(t, "known") == 0 && len(m.appended) > 0 {
			e.ID = rapid.SampledFrom(m.appended).Draw(t, "like").ID
		}
		if next, _, err := at.Admit([]eventlog.Event{e}); err == nil {
			at = next
		}
		b.Events = append(b.Events, e)
	}
	m.submit(t, id, b)
}

// repeat appends earlier events again, to the same session or another.
func (m *machine) repeat(t *rapid.T) {
	if len(m.appended) == 0 {
		t.Skip("DISCARDED: nothing was appended that could be repeated")
	}
	b := eventlog.Batch{Time: m.now(), Events: rapid.SliceOfN(rapid.SampledFrom(m.appended), 1, 3).Draw(t, "events")}
	m.submit(t, names.Draw(t, "session"), b)
}

func (m *machine) submit(t *rapid.T, id string, b eventlog.Batch) {
	if rapid.IntRange(0, 3).Draw(t, "expecting") == 0 {
		expect := m.heads[id].Seq + eventlog.Seq(rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "off by"))
		b.ExpectedHead = &expect
	}
	if rapid.IntRange(0, 3).Draw(t, "with artifacts") == 0 {
		b.Artifacts = rapid.SliceOfN(genArtifact, 1, 2).Draw(t, "artifacts")
	}
	receipts, err := both(m, "append", func(s eventlog.Store) ([]eventlog.Receipt, error) { return appendAndWait(m.ctx, s, id, b) })
	if err != nil {
		return
	}
	for i, r := range receipts {
		if r.Duplicate {
			continue
		}
		next, _, err := m.heads[id].Admit([]eventlog.Event{b.Events[i]})
		if err != nil {
			t.Fatalf("both stores admitted what Admit refuses: %v", err)
		}
		m.heads[id] = next
	}
	m.appended = append(m.appended, b.Events...)
}

func (m *machine) create(t *rapid.T) {
	s := eventlog.Session{
		ID: names.Draw(t, "session"), CreateTime: GenTime().Draw(t, "time"),
		Labels: genMap().Draw(t, "labels"), Settings: []byte(genBytes().Draw(t, "settings")),
	}
	_, _ = both(m, "create", func(store eventlog.Store) (eventlog.Session, error) { return store.CreateSession(m.ctx, s) })
}

func (m *machine) fork(t *rapid.T) {
	r := eventlog.ForkRequest{ParentID: names.Draw(t, "parent"), NewID: names.Draw(t, "child"), Time: m.now()}
	r.At = eventlog.Seq(rapid.Uint64Range(0, uint64(m.heads[r.ParentID].Seq)+1).Draw(t, "at"))
	if rapid.Bool().Draw(t, "labelled") {
		r.Labels = genMap().Draw(t, "labels")
	}
	if _, err := both(m, "fork", func(s eventlog.Store) (eventlog.Session, error) { return s.Fork(m.ctx, r) }); err != nil {
		return
	}
	events, err := Collect(m.model.Read(m.ctx, r.NewID, 1, 0))
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	m.heads[r.NewID], _, err = eventlog.Head{}.Admit(events)
	if err != nil {
		t.Fatalf("a fork's log is not valid: %v", err)
	}
}

func (m *machine) delete(t *rapid.T) {
	id := names.Draw(t, "session")
	var expect *eventlog.Seq
	if rapid.IntRange(0, 1).Draw(t, "expecting") == 0 {
		expect = seqp(m.heads[id].Seq + eventlog.Seq(rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "off by")))
	}
	_, err := both(m, "delete", func(s eventlog.Store) (any, error) { return nil, s.DeleteSession(m.ctx, id, 0, expect) })
	if err == nil {
		delete(m.heads, id)
	}
}

var artifactIDs = rapid.SampledFrom([]string{"x", "y", "x\x00"})

var genArtifact = rapid.Custom(func(t *rapid.T) eventlog.Artifact {
	return eventlog.Artifact{
		Kind:  rapid.SampledFrom([]string{"k", "l", ""}).Draw(t, "kind"),
		Seq:   eventlog.Seq(rapid.Uint64Range(0, 6).Draw(t, "seq")),
		ID:    artifactIDs.Draw(t, "id"),
		Value: []byte(genBytes().Draw(t, "value")),
		New:   rapid.IntRange(0, 3).Draw(t, "new") == 0,
	}
})

func (m *machine) put(t *rapid.T) {
	id := names.Draw(t, "session")
	all := rapid.SliceOfN(genArtifact, 1, 3).Draw(t, "artifacts")
	_, _ = both(m, "put", func(s eventlog.Store) (any, error) { return nil, s.PutArtifacts(m.ctx, id, all...) })
}

func (m *machine) read(t *rapid.T) {
	id := names.Draw(t, "session")
	last := uint64(m.heads[id].Seq) + 2
	from, to := eventlog.Seq(rapid.Uint64Range(0, last).Draw(t, "from")), eventlog.Seq(rapid.Uint64Range(0, last).Draw(t, "to"))
	_, _ = both(m, "read", func(s eventlog.Store) ([]eventlog.Event, error) { return Collect(s.Read(m.ctx, id, from, to)) })
}

func (m *machine) artifacts(t *rapid.T) {
	id := names.Draw(t, "session")
	q := eventlog.ArtifactQuery{
		Kind: "k",
		From: eventlog.Seq(rapid.Uint64Range(0, 7).Draw(t, "from")), To: eventlog.Seq(rapid.Uint64Range(0, 7).Draw(t, "to")),
		Reverse: rapid.Bool().Draw(t, "reverse"),
	}
	if rapid.Bool().Draw(t, "continued") {
		q.After = &eventlog.Artifact{Seq: eventlog.Seq(rapid.Uint64Range(0, 7).Draw(t, "after")), ID: artifactIDs.Draw(t, "after id")}
	}
	_, _ = both(m, "artifacts", func(s eventlog.Store) ([]eventlog.Artifact, error) { return Collect(s.Artifacts(m.ctx, id, q)) })
	seq, name := q.From, artifactIDs.Draw(t, "id")
	_, _ = both(m, "artifact", func(s eventlog.Store) (eventlog.Artifact, error) { return s.Artifact(m.ctx, id, "k", seq, name) })
}

func (m *machine) list(t *rapid.T) {
	q := eventlog.SessionQuery{
		After:  rapid.SampledFrom([]string{"", "a", "bb"}).Draw(t, "after"),
		Before: rapid.SampledFrom([]string{"", "a", "bb"}).Draw(t, "before"),
		Limit:  rapid.IntRange(0, 3).Draw(t, "limit"),
		Brief:  rapid.Bool().Draw(t, "brief"),
	}
	_, _ = both(m, "list", func(s eventlog.Store) ([]eventlog.Session, error) {
		page, err := s.ListSessions(m.ctx, q)
		for i := range page {
			if q.Brief {
				page[i].ChainHead, page[i].ArtifactBytes = nil, 0
			}
		}
		return page, err
	})
}

func (m *machine) reopen(t *rapid.T) {
	if m.o.reopen == nil {
		t.Skip("DISCARDED: the store is not durable, so it cannot be reopened")
	}
	m.real = calm(m.o.reopen(m.outer, bare(m.real)))
}

func (m *machine) compareAll() {
	sessions, err := both(m, "list", func(s eventlog.Store) ([]eventlog.Session, error) {
		return s.ListSessions(m.ctx, eventlog.SessionQuery{})
	})
	if err != nil {
		m.Fatalf("list: %v", err)
	}
	for _, session := range sessions {
		_, err := both(m, "kinds of "+session.ID, func(s eventlog.Store) ([]string, error) { return s.ArtifactKinds(m.ctx, session.ID) })
		if err != nil {
			m.Fatalf("%s: %v", session.ID, err)
		}
		_, err = both(m, "read "+session.ID, func(s eventlog.Store) ([]eventlog.Event, error) { return Collect(s.Read(m.ctx, session.ID, 1, 0)) })
		for _, kind := range []string{"k", "l"} {
			_, artifactErr := both(m, "artifacts of "+session.ID, func(s eventlog.Store) ([]eventlog.Artifact, error) {
				return Collect(s.Artifacts(m.ctx, session.ID, eventlog.ArtifactQuery{Kind: kind}))
			})
			err = errors.Join(err, artifactErr)
		}
		if v, ok := bare(m.real).(verifier); ok {
			err = errors.Join(err, v.Verify(m.ctx, session.ID))
		}
		if err != nil {
			m.Fatalf("%s: %v", session.ID, err)
		}
	}
}

// verifier is a store that can check itself.
type verifier interface {
	Verify(ctx context.Context, id string) error
}
