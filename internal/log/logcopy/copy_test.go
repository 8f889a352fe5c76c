package logcopy_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logcopy"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/log/pglog"
	"github.com/contextd/contextd/internal/log/pglog/pgtest"
)

// server is nil where no PostgreSQL is installed.
var server *pgtest.Server

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if server, err = pgtest.Start(); err != nil {
			fmt.Fprintln(os.Stderr, "PostgreSQL:", err)
			return 1
		}
		if server != nil {
			defer server.Stop()
		}
		return m.Run()
	}())
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)

func openMemory(testing.TB) eventlog.Store { return memlog.New() }

func openDisk(t testing.TB) eventlog.Store {
	t.Helper()
	s, err := disklog.Open(t.TempDir(), disklog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func openPostgres(t testing.TB) eventlog.Store {
	t.Helper()
	if server == nil {
		t.Skip("SKIPPED: no PostgreSQL is installed (Debian's package postgresql)")
	}
	s, err := pglog.Open(t.Context(), server.Schema(t), pglog.Options{Migrate: true, MaxConnections: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func appendTo(t testing.TB, s eventlog.Store, id string, at int, texts ...string) {
	t.Helper()
	var events []eventlog.Event
	for _, text := range texts {
		events = append(events, logtest.Say(text))
	}
	c, err := s.Append(t.Context(), id, eventlog.Batch{Events: events, Time: epoch.Add(time.Duration(at) * time.Minute)})
	if err == nil {
		_, err = c.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func fork(t testing.TB, s eventlog.Store, parent string, at eventlog.Seq, id string) {
	t.Helper()
	if _, err := s.Fork(t.Context(), eventlog.ForkRequest{ParentID: parent, At: at, NewID: id, Time: epoch.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
}

func put(t testing.TB, s eventlog.Store, id, kind string, seq eventlog.Seq, value string) {
	t.Helper()
	if err := s.PutArtifacts(t.Context(), id, eventlog.Artifact{Kind: kind, Seq: seq, ID: "i", Value: []byte(value)}); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, s eventlog.Store, id string) {
	t.Helper()
	if err := s.DeleteSession(t.Context(), id, 0, nil); err != nil {
		t.Fatal(err)
	}
}

// fill makes sessions of all sorts: forks of forks, of sessions that are gone, of one of which another
// has the id, and of one that is itself a fork of its fork.
func fill(t testing.TB, s eventlog.Store) {
	t.Helper()
	if _, err := s.CreateSession(t.Context(), eventlog.Session{
		ID: "labelled", CreateTime: epoch, Labels: map[string]string{"k": "v"}, Settings: []byte{0, 1},
	}); err != nil {
		t.Fatal(err)
	}
	fork(t, s, "labelled", 0, "empty fork")
	appendTo(t, s, "~tenant/a", 1, "a1", "a2")
	put(t, s, "~tenant/a", "k", 1, "old")
	put(t, s, "~tenant/a", "k\x00", 2, "v")
	fork(t, s, "~tenant/a", 2, "~tenant/b")
	put(t, s, "~tenant/a", "k", 1, "new")
	put(t, s, "~tenant/a", "late", 1, "after the fork")
	appendTo(t, s, "~tenant/a", 2, "a3")
	appendTo(t, s, "~tenant/b", 3, "b3")
	put(t, s, "~tenant/b", "late", 3, "own")
	fork(t, s, "~tenant/b", 1, "~tenant/c")
	remove(t, s, "~tenant/b")
	for round := range 2 {
		appendTo(t, s, "gone", 4, "g1", fmt.Sprintf("g2 of round %d", round), "g3")
		put(t, s, "gone", "k", 1, fmt.Sprint(round))
		fork(t, s, "gone", 3, fmt.Sprintf("x%d", round))
		fork(t, s, "gone", 2, fmt.Sprintf("w%d", round))
		appendTo(t, s, fmt.Sprintf("w%d", round), 5, "own")
		fork(t, s, fmt.Sprintf("w%d", round), 3, fmt.Sprintf("v%d", round))
		remove(t, s, "gone")
	}
	fork(t, s, "x0", 2, "gone") // its own grandchild
	appendTo(t, s, "gone", 6, "other")
	fork(t, s, "gone", 3, "of another")
}

// state is all that a store shows.
type state struct {
	Session   eventlog.Session
	Events    []eventlog.Event
	Artifacts []eventlog.Artifact
}

func show(t rapid.TB, s eventlog.Store) (all []state) {
	t.Helper()
	ctx := context.Background()
	sessions, err := s.ListSessions(ctx, eventlog.SessionQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range sessions {
		info.ArtifactBytes = 0 // of which versions is each store's affair
		one := state{Session: info}
		if one.Events, err = logtest.Collect(s.Read(ctx, info.ID, 1, 0)); err != nil {
			t.Fatal(err)
		}
		kinds, err := s.ArtifactKinds(ctx, info.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range kinds {
			artifacts, err := logtest.Collect(s.Artifacts(ctx, info.ID, eventlog.ArtifactQuery{Kind: kind}))
			if err != nil {
				t.Fatal(err)
			}
			one.Artifacts = append(one.Artifacts, artifacts...)
		}
		all = append(all, one)
	}
	return all
}

func TestCopy(t *testing.T) {
	stores := []struct {
		name string
		open func(testing.TB) eventlog.Store
	}{{"memory", openMemory}, {"disk", openDisk}, {"postgres", openPostgres}}
	for _, from := range stores {
		for _, to := range stores {
			t.Run(from.name+" to "+to.name, func(t *testing.T) {
				source, target := from.open(t), to.open(t)
				fill(t, source)
				appendTo(t, target, "another's", 0, "stays")
				first, err := logcopy.Copy(t.Context(), source, target, logcopy.Options{})
				if err != nil {
					t.Fatal(err)
				}
				sessions := uint64(len(show(t, source)))
				if first.Sessions != sessions || first.NewSessions != sessions || first.Forks == 0 ||
					first.NewEvents == 0 || first.NewEvents >= first.Events || first.NewArtifacts != first.Artifacts {
					t.Errorf("%+v of %d sessions", first, sessions)
				}
				// What came since is added.
				appendTo(t, source, "~tenant/a", 9, "a4")
				put(t, source, "~tenant/a", "k", 1, "newest")
				fork(t, source, "~tenant/a", 4, "younger")
				second, err := logcopy.Copy(t.Context(), source, target, logcopy.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if second.NewSessions != 1 || second.NewEvents != 1 || second.Sessions != sessions+1 {
					t.Errorf("again: %+v", second)
				}
				if diff := logtest.Diff(show(t, source), without(show(t, target), "another's")); diff != "" {
					t.Errorf("(-source +target):\n%s", diff)
				}
				if v, ok := target.(interface {
					Verify(context.Context, string) error
				}); ok {
					for _, one := range show(t, target) {
						if err := v.Verify(t.Context(), one.Session.ID); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
	}
}

func without(all []state, id string) (out []state) {
	for _, one := range all {
		if one.Session.ID != id {
			out = append(out, one)
		}
	}
	return out
}

// TestRefused: what is in the target under the id of a session, and is not its copy, is left alone.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(t *testing.T, source, target eventlog.Store)
		says string
	}{
		"another event": {func(t *testing.T, _, target eventlog.Store) {
			remove(t, target, "s")
			appendTo(t, target, "s", 1, "a", "x")
		}, `session "s" of the target is not a copy of the source's: event 2 differs`},
		"another time": {func(t *testing.T, _, target eventlog.Store) {
			remove(t, target, "s")
			appendTo(t, target, "s", 2, "a", "b")
		}, "it was made at another time"},
		"more events":       {func(t *testing.T, _, target eventlog.Store) { appendTo(t, target, "s", 2, "c") }, "it has more events"},
		"an artifact":       {func(t *testing.T, _, target eventlog.Store) { put(t, target, "s", "k", 0, "") }, "it has the artifact k i of event 0"},
		"a last artifact":   {func(t *testing.T, _, target eventlog.Store) { put(t, target, "s", "k", 7, "") }, "it has the artifact k i of event 7"},
		"kinds of artifact": {func(t *testing.T, _, target eventlog.Store) { put(t, target, "s", "l", 1, "") }, `it has artifacts of the kind "l"`},
		"another parent": {func(t *testing.T, _, target eventlog.Store) {
			remove(t, target, "f")
			fork(t, target, "s", 2, "f")
		}, `session "f" of the target is not a copy of the source's: it is a fork of something else`},
		"other labels": {func(t *testing.T, _, target eventlog.Store) {
			remove(t, target, "l")
			if _, err := target.CreateSession(t.Context(), eventlog.Session{ID: "l", CreateTime: epoch}); err != nil {
				t.Fatal(err)
			}
		}, "it has other labels"},
		"a parent that is gone": {func(t *testing.T, source, _ eventlog.Store) {
			fork(t, source, "s", 2, "late")
			remove(t, source, "s")
		}, `session "s" of the target is not a copy of the source's: the source deleted it after it forked "late" from it`},
		"an unfinished source": {func(t *testing.T, source, _ eventlog.Store) {
			if _, err := source.CreateSession(t.Context(), eventlog.Session{ID: "temporary", Labels: map[string]string{logcopy.LabelTemporary: "true"}}); err != nil {
				t.Fatal(err)
			}
		}, `the source is a copy that was not finished: its session "temporary" is there only while forks are copied`},
	} {
		t.Run(name, func(t *testing.T) {
			source, target := memlog.New(), memlog.New()
			appendTo(t, source, "s", 1, "a", "b")
			put(t, source, "s", "k", 1, "v")
			fork(t, source, "s", 1, "f")
			if _, err := source.CreateSession(t.Context(), eventlog.Session{ID: "l", CreateTime: epoch, Labels: map[string]string{"k": "v"}}); err != nil {
				t.Fatal(err)
			}
			if _, err := logcopy.Copy(t.Context(), source, target, logcopy.Options{}); err != nil {
				t.Fatal(err)
			}
			c.do(t, source, target)
			before := show(t, target)
			_, err := logcopy.Copy(t.Context(), source, target, logcopy.Options{})
			if part, ok := errors.AsType[*logcopy.PartError](err); ok {
				err = errors.Join(part.Unwrap()...)
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
			if diff := logtest.Diff(before, show(t, target)); diff != "" {
				t.Errorf("the target was changed:\n%s", diff)
			}
		})
	}
}

// halting fails after a number of writes, before or after the one that it fails.
type halting struct {
	eventlog.Store
	left  int
	after bool
}

var errHalted = errors.New("halted")

func halt[T any](h *halting, write func() (T, error)) (out T, err error) {
	if h.left--; h.left < 0 && !h.after {
		return out, errHalted
	}
	out, err = write()
	if h.left < 0 {
		return out, errHalted
	}
	return out, err
}

func (h *halting) CreateSession(ctx context.Context, s eventlog.Session) (eventlog.Session, error) {
	return halt(h, func() (eventlog.Session, error) { return h.Store.CreateSession(ctx, s) })
}

func (h *halting) Fork(ctx context.Context, r eventlog.ForkRequest) (eventlog.Session, error) {
	return halt(h, func() (eventlog.Session, error) { return h.Store.Fork(ctx, r) })
}

func (h *halting) DeleteSession(ctx context.Context, id string, of eventlog.Incarnation, head *eventlog.Seq) error {
	_, err := halt(h, func() (any, error) { return nil, h.Store.DeleteSession(ctx, id, of, head) })
	return err
}

func (h *halting) Append(ctx context.Context, id string, b eventlog.Batch) (eventlog.Commit, error) {
	return halt(h, func() (eventlog.Commit, error) { return h.Store.Append(ctx, id, b) })
}

func (h *halting) PutArtifacts(ctx context.Context, id string, all ...eventlog.Artifact) error {
	_, err := halt(h, func() (any, error) { return nil, h.Store.PutArtifacts(ctx, id, all...) })
	return err
}

// TestInterrupted: a copy of whatever a store may hold that is ended anywhere, any number of times, and
// repeated is equal to the source.
func TestInterrupted(t *testing.T) {
	openFast := func(t testing.TB) eventlog.Store {
		s, err := disklog.Open("store", disklog.Options{FS: vfs.NewMem()})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	stores := map[string]func(testing.TB) eventlog.Store{"memory": openMemory, "disk": openFast}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				source, target := open(t), open(t)
				defer source.Close()
				defer target.Close()
				logtest.Fill(rt, source)
				for {
					h := &halting{Store: target, left: rapid.IntRange(0, 12).Draw(rt, "writes"), after: rapid.Bool().Draw(rt, "after")}
					if rapid.IntRange(0, 3).Draw(rt, "whole") == 0 {
						h.left = 1 << 20
					}
					_, err := logcopy.Copy(t.Context(), source, h, logcopy.Options{Workers: 1})
					if err == nil {
						break
					}
					if !errors.Is(err, errHalted) {
						rt.Fatal(err)
					}
				}
				if diff := logtest.Diff(show(rt, source), show(rt, target)); diff != "" {
					rt.Fatalf("(-source +target):\n%s", diff)
				}
			})
		})
	}
}

// TestCancelled: a copy whose context ends says so.
func TestCancelled(t *testing.T) {
	source := memlog.New()
	fill(t, source)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	report, err := logcopy.Copy(ctx, source, memlog.New(), logcopy.Options{Workers: 1, Done: func(string) {
		if n++; n == 2 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || report.Sessions < 2 {
		t.Errorf("%+v, %v", report, err)
	}
}
