package disklog_test

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// Pebble leaves it running where opening fails late; of a database that was
		// not closed it is not the only trace.
		goleak.IgnoreTopFunction("github.com/cockroachdb/pebble/v2.(*ConcurrencyLimitScheduler).periodicGranter"))
}

func open(t testing.TB, dir string, opts disklog.Options) *disklog.Store {
	t.Helper()
	s, err := disklog.Open(dir, opts)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

// stores opens stores on file systems of their own and reopens each on the same.
type stores struct {
	opts   disklog.Options
	dirs   map[eventlog.Store]string
	opened map[eventlog.Store]func(t testing.TB) eventlog.Store
}

func (st *stores) open(dir string, opts disklog.Options) func(t testing.TB) eventlog.Store {
	return func(t testing.TB) eventlog.Store {
		s := open(t, dir, opts)
		st.opened[s], st.dirs[s] = st.open(dir, opts), dir
		return s
	}
}

func (st *stores) inMemory(t testing.TB) eventlog.Store {
	opts := st.opts
	opts.FS = vfs.NewMem()
	return st.open("data/log", opts)(t)
}

func (st *stores) onDisk(t testing.TB) eventlog.Store {
	return st.open(t.TempDir(), st.opts)(t)
}

func (st *stores) reopen(t testing.TB, s eventlog.Store) eventlog.Store {
	t.Helper()
	if err := s.Close(); err != nil && !errors.Is(err, eventlog.ErrClosed) {
		t.Fatalf("close: %v", err)
	}
	return st.opened[s](t)
}

// holds reports whether a file of a store on disk holds a text.
func (st *stores) holds(t testing.TB, s eventlog.Store, text string) bool {
	t.Helper()
	return len(secrets{"text": text}.found(t, st.dirs[s])) > 0
}

func newStores(opts disklog.Options) *stores {
	return &stores{opts: opts, dirs: map[eventlog.Store]string{}, opened: map[eventlog.Store]func(testing.TB) eventlog.Store{}}
}

func TestConformance(t *testing.T) {
	st := newStores(disklog.Options{})
	logtest.Run(t, st.onDisk, logtest.Durable(st.reopen), logtest.Medium(st.holds))
}

// Small limits, so that sessions are forgotten and loaded again all the time and
// tables and logs change often.
func TestConformanceSmall(t *testing.T) {
	st := newStores(disklog.Options{IdleSessions: 1, MemTableBytes: 64 << 10, SeparateBytes: 16, CacheBytes: 1 << 20})
	logtest.Run(t, st.inMemory, logtest.Durable(st.reopen))
}

func TestConformanceWithoutValueSeparation(t *testing.T) {
	st := newStores(disklog.Options{DisableValueSeparation: true})
	logtest.Run(t, st.inMemory, logtest.Durable(st.reopen))
}

func TestModel(t *testing.T) {
	st := newStores(disklog.Options{IdleSessions: 1, MemTableBytes: 64 << 10, SeparateBytes: 16, CacheBytes: 1 << 20})
	logtest.RunModel(t, st.inMemory, logtest.Durable(st.reopen))
}

func appendTo(t testing.TB, s eventlog.Store, id string, events ...eventlog.Event) error {
	t.Helper()
	c, err := s.Append(t.Context(), id, eventlog.Batch{Events: events})
	if err == nil {
		_, err = c.Wait(t.Context())
	}
	return err
}

func mustAppend(t testing.TB, s eventlog.Store, id string, events ...eventlog.Event) {
	t.Helper()
	if err := appendTo(t, s, id, events...); err != nil {
		t.Errorf("append to %s: %v", id, err)
	}
}

func verifyAll(t testing.TB, s *disklog.Store) {
	t.Helper()
	all, err := s.ListSessions(t.Context(), eventlog.SessionQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, session := range all {
		if err := s.Verify(t.Context(), session.ID); err != nil {
			t.Errorf("verify %s: %v", session.ID, err)
		}
	}
}
