package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/pglog"
	"github.com/contextd/contextd/internal/log/pglog/pgtest"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// rewindable is a store of which states are kept, and put back. The store of a directory must be closed for that.
type rewindable struct {
	open          func(t *testing.T) eventlog.Store
	keep, putBack func(t *testing.T, state string)
	openWith      func(t *testing.T, o pglog.Options) eventlog.Store // of a database alone
}

func rewindableDirectory(t *testing.T) rewindable {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	replace := func(t *testing.T, to, from string) {
		t.Helper()
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	return rewindable{
		open: func(t *testing.T) eventlog.Store {
			t.Helper()
			store, err := disklog.Open(data, disklog.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return store
		},
		keep:    func(t *testing.T, state string) { t.Helper(); replace(t, filepath.Join(dir, state), data) },
		putBack: func(t *testing.T, state string) { t.Helper(); replace(t, data, filepath.Join(dir, state)) },
	}
}

func rewindableDatabase(t *testing.T) rewindable {
	database, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	if database == nil {
		t.Skip("SKIPPED: no PostgreSQL is installed (Debian's package postgresql)")
	}
	t.Cleanup(database.Stop)
	tables := []string{"contextd_sessions", "contextd_shares", "contextd_events", "contextd_artifacts"}
	// Each is one transaction: a running server sees the one state or the other.
	each := func(t *testing.T, statement, state string) {
		t.Helper()
		sql := ""
		for _, name := range tables {
			sql += fmt.Sprintf(statement, name, state)
		}
		database.Exec(t, database.DSN(""), sql)
	}
	openWith := func(t *testing.T, o pglog.Options) eventlog.Store {
		t.Helper()
		store, err := pglog.Open(t.Context(), database.DSN(""), o)
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	return rewindable{
		openWith: openWith,
		open: func(t *testing.T) eventlog.Store {
			t.Helper()
			return openWith(t, pglog.Options{Migrate: true, Poll: 10 * time.Millisecond})
		},
		keep: func(t *testing.T, state string) {
			t.Helper()
			each(t, "CREATE TABLE %[2]s_%[1]s AS TABLE %[1]s;", state)
		},
		putBack: func(t *testing.T, state string) {
			t.Helper()
			each(t, "DELETE FROM %[1]s; INSERT INTO %[1]s TABLE %[2]s_%[1]s;", state)
		},
	}
}

// seen is what a client knows of the session s.
type seen struct {
	mark   *contextdv1.LogMark
	cursor *contextdv1.LifecycleCursor
}

// grow appends events to the session s, assembles it after each, and returns what its client knows then.
func (a *api) grow(t *testing.T, texts ...string) (out seen) {
	t.Helper()
	for _, text := range texts {
		e := user(text)
		e.EventId = text
		out.mark = a.append(t, "s", e).GetMark()
		if _, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s"}); err != nil {
			t.Fatal(err)
		}
	}
	happened := a.watchAfter(t.Context(), t, &contextdv1.WatchLifecycleRequest{After: []*contextdv1.LifecycleCursor{after("s", 0)}})
	for out.cursor.GetNumber() < out.mark.GetHeadSeq() {
		resp, err := happened.Recv()
		if err != nil {
			t.Fatal(err)
		}
		e := resp.GetEvent()
		out.cursor = &contextdv1.LifecycleCursor{SessionId: "s", Number: e.GetNumber(), Incarnation: e.GetIncarnation(), Time: e.GetTime()}
	}
	return out
}

// follow opens a stream of the session's events and returns its next message.
func (a *api) follow(t *testing.T, from uint64, known *contextdv1.LogMark) func() (*contextdv1.ReadEventsResponse, error) {
	t.Helper()
	stream, err := a.ReadEvents(t.Context(), &contextdv1.ReadEventsRequest{SessionId: "s", FromSeq: from, Follow: true, Known: known})
	if err != nil {
		t.Fatal(err)
	}
	return stream.Recv
}

// resume makes every call by which a client goes on with what it knows, and returns their errors.
func (a *api) resume(t *testing.T, known seen) map[string]error {
	t.Helper()
	errs := map[string]error{}
	errs["append"], errs["assemble"] = a.known(t, known.mark, nil)
	_, errs["delete"] = a.DeleteSession(t.Context(), &contextdv1.DeleteSessionRequest{SessionId: "s", Known: known.mark, ExpectedHead: proto.Uint64(99)})
	_, errs["follow"] = a.follow(t, known.mark.GetHeadSeq(), known.mark)()
	stream, err := a.compaction.WatchLifecycle(t.Context(), &contextdv1.WatchLifecycleRequest{After: []*contextdv1.LifecycleCursor{known.cursor}})
	if err == nil {
		_, err = stream.Recv()
	}
	errs["watch"] = err
	return errs
}

func isLost(err error) bool {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok && info.GetReason() == apierr.ReasonLogLost {
			return true
		}
	}
	return false
}

// TestSetBackAndGrownAgain: a store that is set back keeps the incarnations of its sessions. Clients that know what was
// lost are refused, also once there are as many events again; those that know less are not.
func TestSetBackAndGrownAgain(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T) rewindable{"disk": rewindableDirectory, "postgres": rewindableDatabase} {
		t.Run(name, func(t *testing.T) {
			store := prepare(t)
			var early, late seen
			phase := func(name string, do func(t *testing.T, a *api)) {
				t.Helper()
				if !t.Run(name, func(t *testing.T) { do(t, serve(t, store.open(t))) }) {
					t.FailNow()
				}
			}
			phase("first", func(t *testing.T, a *api) { early = a.grow(t, "1", "2") })
			store.keep(t, "early")
			phase("lost", func(t *testing.T, a *api) {
				late = a.grow(t, "3", "4")
				part, err := a.follow(t, 0, nil)()
				if err != nil || part.GetIncarnation() != late.mark.GetIncarnation() || part.GetChainHead() != late.mark.GetChainHead() {
					t.Errorf("the mark of an append is %v, and what is read %v, %v", late.mark, part, err)
				}
			})
			store.putBack(t, "early")
			phase("set back", func(t *testing.T, a *api) {
				a.clock.seconds.Add(1_000_000)
				lost := func(when string) {
					t.Helper()
					for call, err := range a.resume(t, late) {
						if !isLost(err) {
							t.Errorf("%s, %s: %v", when, call, err)
						}
					}
				}
				lost("shorter")
				a.grow(t, "another 3", "another 4")
				lost("as long")
				now := a.grow(t, "5")
				lost("longer")
				dateless := late.cursor
				dateless.Time = nil
				for what, known := range map[string]seen{
					"early": early, "current": now,
					"without a hash": {&contextdv1.LogMark{Incarnation: late.mark.GetIncarnation(), HeadSeq: late.mark.GetHeadSeq()}, dateless},
				} {
					appended, assembled := a.known(t, known.mark, nil)
					if appended != nil || assembled != nil {
						t.Errorf("%s: %v, %v", what, appended, assembled)
					}
					if _, err := a.follow(t, known.mark.GetHeadSeq(), known.mark)(); err != nil {
						t.Errorf("%s: a follower's stream ends with %v", what, err)
					}
					watch := a.watchAfter(t.Context(), t, &contextdv1.WatchLifecycleRequest{After: []*contextdv1.LifecycleCursor{known.cursor}})
					if resp, err := watch.Recv(); err != nil || resp.GetEvent().GetNumber() != known.cursor.GetNumber()+1 {
						t.Errorf("%s: a watch goes on with %v, %v", what, resp, err)
					}
				}
				early.cursor.Time = timestamppb.New(early.cursor.GetTime().AsTime().Add(time.Nanosecond))
				if errs := a.resume(t, seen{late.mark, early.cursor}); !isLost(errs["watch"]) {
					t.Errorf("with another time: %v", errs["watch"])
				}
			})
		})
	}
}

// TestSetBackUnderStreams: a database is set back while clients follow a session, by one step to where other events
// have the place of those that were sent. No daemon sends what comes after those.
func TestSetBackUnderStreams(t *testing.T) {
	store := rewindableDatabase(t)
	first := serve(t, store.open(t))
	first.grow(t, "1", "2")
	store.keep(t, "early")
	first.grow(t, "another 3", "another 4", "another 5")
	store.keep(t, "other")
	for _, state := range []string{"early", "other"} {
		t.Run(state, func(t *testing.T) {
			store.putBack(t, "early")
			a := serve(t, store.open(t))
			a.clock.seconds.Add(1_000_000)
			late := a.grow(t, "3", "4")
			next := a.follow(t, 4, late.mark)
			if part, err := next(); err != nil || len(part.GetEvents()) != 1 {
				t.Fatal(part, err)
			}
			watch := a.watchAfter(t.Context(), t, &contextdv1.WatchLifecycleRequest{After: []*contextdv1.LifecycleCursor{after("s", 3)}})
			if resp, err := watch.Recv(); err != nil || resp.GetEvent().GetNumber() != 4 {
				t.Fatal(resp, err)
			}
			store.putBack(t, state)
			if part, err := next(); !isLost(err) {
				t.Errorf("a follower gets %v, %v", part, err)
			}
			a.grow(t, "now") // has the watch look
			if resp, err := watch.Recv(); !isLost(err) {
				t.Errorf("a watch gets %v, %v", resp, err)
			}
		})
	}
}
