package pglog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/pglog"
)

// blocks counts the blocks of the database that statements touch, by having the server explain each before it is made.
type blocks struct {
	t       *testing.T
	conn    *pgx.Conn
	touched int
}

func (b *blocks) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	tx, err := b.conn.Begin(ctx)
	if err != nil {
		b.t.Error(err)
		return ctx
	}
	var text string
	err = tx.QueryRow(ctx, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+q.SQL, q.Args...).Scan(&text)
	if undone := tx.Rollback(ctx); err != nil || undone != nil {
		b.t.Errorf("explain %s: %v, %v", q.SQL, err, undone)
		return ctx
	}
	var out []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		b.t.Error(err)
		return ctx
	}
	b.touched += out[0].Plan.Hit + out[0].Plan.Read
	return ctx
}

func (*blocks) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// manySessions are copies of a session that has a few events and artifacts.
const manySessions = `WITH o AS (SELECT incarnation AS i FROM contextd_sessions WHERE id = 'small'),
	m AS (SELECT n, nextval('contextd_incarnations') AS inc FROM generate_series(1, 2000) AS n),
	s AS (INSERT INTO contextd_sessions SELECT convert_to('small/' || n, 'UTF8'), inc, version, info, head, state, puts, artifact_bytes FROM m, contextd_sessions WHERE id = 'small'),
	h AS (INSERT INTO contextd_shares SELECT inc, inc, up_to, puts FROM m, contextd_shares, o WHERE segment = o.i),
	e AS (INSERT INTO contextd_events SELECT inc, seq, id_hash, digest, record, head, chain, log_bytes FROM m, contextd_events, o WHERE segment = o.i)
	INSERT INTO contextd_artifacts SELECT inc, kind, seq, id, put, value FROM m, contextd_artifacts, o WHERE segment = o.i`

// TestPlans: what looks for a few rows of a large session does not go over all of them, although the server takes
// it to be as small as the many beside it.
func TestPlans(t *testing.T) {
	needServer(t)
	dsn := server.Schema(t)
	filling := open(t, dsn, pglog.Options{})
	t.Cleanup(func() { closeStore(t, filling) })
	fill := func(id string, from, to int) {
		t.Helper()
		for ; from < to; from += 250 {
			var b eventlog.Batch
			var all []eventlog.Artifact
			for i := from; i < min(from+250, to); i++ {
				b.Events = append(b.Events, event(id, i))
				all = append(all, eventlog.Artifact{Kind: "k", Seq: eventlog.Seq(i + 1), ID: "a", Value: make([]byte, 300)})
			}
			b.Time = time.Unix(1, 0)
			c, err := filling.Append(t.Context(), id, b)
			if err == nil {
				_, err = c.Wait(t.Context())
			}
			if err == nil {
				err = filling.PutArtifacts(t.Context(), id, all...)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	fill("small", 0, 4)
	server.Exec(t, dsn, manySessions+"; ANALYZE contextd_sessions, contextd_shares, contextd_events, contextd_artifacts")

	const few, many = 500, 2_000
	fill("large", 0, few)
	before := touched(t, dsn, few)
	fill("large", few, many)
	for what, n := range touched(t, dsn, many) {
		t.Logf("%s: %d blocks beside %d rows, %d beside %d", what, before[what], few, n, many)
		if n > before[what]*3/2+20 {
			t.Errorf("%s touches %d blocks of a session with %d rows, and %d with %d", what, before[what], few, n, many)
		}
	}
}

func event(id string, i int) eventlog.Event {
	e := logtest.Say(fmt.Sprint("message ", i))
	e.ID = fmt.Sprint(id, "-", i)
	return e
}

// touched is how many blocks calls for the session large, with n events and artifacts, touch, and then for a fork of it.
func touched(t *testing.T, dsn string, n int) map[string]int {
	t.Helper()
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	out := map[string]int{}
	count := func(what string, call func(s *pglog.Store) error) {
		t.Helper()
		b := &blocks{t: t, conn: conn}
		s := open(t, dsn, pglog.Options{Tracer: b}) // a new one remembers nothing
		if err := call(s); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		out[what] = b.touched
		closeStore(t, s)
	}
	fork := fmt.Sprint("fork-", n)
	count("a fork", func(s *pglog.Store) error {
		_, err := s.Fork(ctx, eventlog.ForkRequest{ParentID: "large", At: eventlog.Seq(n), NewID: fork, Time: time.Unix(2, 0)})
		return err
	})
	for _, id := range []string{"large", fork} {
		count("append to "+id[:4], func(s *pglog.Store) error {
			_, err := appendTo(t, s, id, event(id+"more", n+1))
			return err
		})
		count("append again to "+id[:4], func(s *pglog.Store) error {
			_, err := appendTo(t, s, id, event("large", n/2))
			return err
		})
		count("replace an artifact of "+id[:4], func(s *pglog.Store) error {
			return s.PutArtifacts(ctx, id, eventlog.Artifact{Kind: "k", Seq: 7, ID: "a", Value: []byte("newer")})
		})
		count("put a new artifact of "+id[:4], func(s *pglog.Store) error {
			return s.PutArtifacts(ctx, id, eventlog.Artifact{Kind: "k", Seq: eventlog.Seq(n), ID: "b", New: true})
		})
		for _, q := range []eventlog.ArtifactQuery{{Kind: "k"}, {Kind: "k", Reverse: true}} {
			count(fmt.Sprintf("the first artifacts of %s, reverse %v", id[:4], q.Reverse), func(s *pglog.Store) error {
				for _, err := range s.Artifacts(ctx, id, q) {
					return err
				}
				return nil
			})
		}
		count("kinds of "+id[:4], func(s *pglog.Store) error {
			_, err := s.ArtifactKinds(ctx, id)
			return err
		})
		count("read single events of "+id[:4], func(s *pglog.Store) error {
			for _, err := range s.ReadRuns(ctx, id, eventlog.RangesOf([]eventlog.Seq{2, 9, 77, 401})) {
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return out
}
