package pglog_test

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/pglog"
)

// several are the stores of several processes in one database. Each call goes to another, but those of leases and
// those that wait.
type several struct {
	eventlog.Store // the first
	all            []eventlog.Store
	calls          atomic.Int64
}

func (s *several) next() eventlog.Store { return s.all[int(s.calls.Add(1))%len(s.all)] }

func (s *several) Session(ctx context.Context, id string) (eventlog.Session, error) {
	return s.next().Session(ctx, id)
}

func (s *several) Read(ctx context.Context, id string, from, to eventlog.Seq) iter.Seq2[eventlog.Event, error] {
	return s.next().Read(ctx, id, from, to)
}

func (s *several) CreateSession(ctx context.Context, from eventlog.Session) (eventlog.Session, error) {
	return s.next().CreateSession(ctx, from)
}

func (s *several) ListSessions(ctx context.Context, q eventlog.SessionQuery) ([]eventlog.Session, error) {
	return s.next().ListSessions(ctx, q)
}

func (s *several) Fork(ctx context.Context, r eventlog.ForkRequest) (eventlog.Session, error) {
	return s.next().Fork(ctx, r)
}

func (s *several) DeleteSession(ctx context.Context, id string, of eventlog.Incarnation, head *eventlog.Seq) error {
	return s.next().DeleteSession(ctx, id, of, head)
}

func (s *several) Append(ctx context.Context, id string, b eventlog.Batch) (eventlog.Commit, error) {
	return s.next().Append(ctx, id, b)
}

func (s *several) ChainHead(ctx context.Context, id string, seq eventlog.Seq) ([]byte, error) {
	return s.next().ChainHead(ctx, id, seq)
}

func (s *several) PutArtifacts(ctx context.Context, id string, all ...eventlog.Artifact) error {
	return s.next().PutArtifacts(ctx, id, all...)
}

func (s *several) Artifact(ctx context.Context, id, kind string, seq eventlog.Seq, artifactID string) (eventlog.Artifact, error) {
	return s.next().Artifact(ctx, id, kind, seq, artifactID)
}

func (s *several) Artifacts(ctx context.Context, id string, q eventlog.ArtifactQuery) iter.Seq2[eventlog.Artifact, error] {
	return s.next().Artifacts(ctx, id, q)
}

func (s *several) ArtifactKinds(ctx context.Context, id string) ([]string, error) {
	return s.next().ArtifactKinds(ctx, id)
}

func (s *several) Close() error {
	var first error
	for _, one := range s.all {
		first = cmp.Or(first, one.Close())
	}
	return first
}

// TestConformanceOfSeveral: whichever process a caller turns to, and then the next, it finds the store that the
// contract describes.
func TestConformanceOfSeveral(t *testing.T) {
	needServer(t)
	st := newStores(pglog.Options{Attempts: 1, MaxConnections: 4})
	dsns := map[eventlog.Store]string{}
	in := func(t testing.TB, dsn string) eventlog.Store {
		s := &several{}
		for range 3 {
			s.all = append(s.all, open(t, dsn, st.opts))
		}
		s.Store = s.all[0]
		dsns[s] = dsn
		return s
	}
	anew := func(t testing.TB) eventlog.Store { return in(t, st.schema(t)) }
	logtest.Run(t, anew, logtest.Durable(func(t testing.TB, s eventlog.Store) eventlog.Store {
		t.Helper()
		if err := s.Close(); err != nil && !errors.Is(err, eventlog.ErrClosed) {
			t.Fatalf("close: %v", err)
		}
		return in(t, dsns[s])
	}))
}
