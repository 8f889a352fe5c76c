package pglog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/pglog"
)

// work counts the blocks and rows of the database that statements go over, by having the server explain each before it
// is made.
type work struct {
	t    *testing.T
	conn *pgx.Conn
	n    int
}

// node is a part of a plan that was carried out.
type node struct {
	Hit     int     `json:"Shared Hit Blocks"`
	Read    int     `json:"Shared Read Blocks"`
	Rows    float64 `json:"Actual Rows"`
	Loops   float64 `json:"Actual Loops"`
	Removed float64 `json:"Rows Removed by Filter"`
	Apart   float64 `json:"Rows Removed by Join Filter"`
	Plans   []node
}

func (n node) rows() int {
	sum := int((n.Rows + n.Removed + n.Apart) * n.Loops)
	for _, p := range n.Plans {
		sum += p.rows()
	}
	return sum
}

func (w *work) explain(ctx context.Context, sql string, args []any) {
	for _, locking := range []string{"begin", "commit", "UPDATE contextd_sessions SET version", "SELECT 1 FROM contextd_sessions", "DELETE FROM contextd_sessions", "SELECT pg_notify"} {
		if strings.HasPrefix(sql, locking) {
			return // it goes by keys, would wait for the one that is explained, or is made beside it
		}
	}
	tx, err := w.conn.Begin(ctx)
	if err != nil {
		w.t.Error(err)
		return
	}
	var text string
	err = tx.QueryRow(ctx, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+sql, args...).Scan(&text)
	if undone := tx.Rollback(ctx); err != nil || undone != nil {
		w.t.Errorf("explain %s: %v, %v", sql, err, undone)
		return
	}
	var out []struct{ Plan node }
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		w.t.Error(err)
		return
	}
	w.n += out[0].Plan.Hit + out[0].Plan.Read + out[0].Plan.rows()
}

func (w *work) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	w.explain(ctx, q.SQL, q.Args)
	return ctx
}

func (*work) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (w *work) TraceBatchStart(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	for _, q := range b.Batch.QueuedQueries {
		w.explain(ctx, q.SQL, q.Arguments)
	}
	return ctx
}

func (*work) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (*work) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

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
		if n > before[what]*3/2+20 {
			t.Errorf("%s goes over %d blocks and rows of a session with %d events, and %d with %d", what, before[what], few, n, many)
		}
	}
}

func event(id string, i int) eventlog.Event {
	e := logtest.Say(fmt.Sprint("message ", i))
	e.ID = fmt.Sprint(id, "-", i)
	return e
}

// touched is how many blocks and rows calls for the session large, with n events and artifacts, go over, and then for a
// fork of it.
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
		w := &work{t: t, conn: conn}
		s := open(t, dsn, pglog.Options{Tracer: w}) // a new one remembers nothing
		if err := call(s); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		out[what] = w.n
		closeStore(t, s)
	}
	fork := fmt.Sprint("fork-", n)
	count("a fork", func(s *pglog.Store) error {
		_, err := s.Fork(ctx, eventlog.ForkRequest{ParentID: "large", At: eventlog.Seq(n - 10), NewID: fork, Time: time.Unix(2, 0)})
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

// TestDeleteOfMany: to delete a fork takes as much beside many other forks of the session as beside a few.
func TestDeleteOfMany(t *testing.T) {
	needServer(t)
	dsn := server.Schema(t)
	filling := open(t, dsn, pglog.Options{})
	t.Cleanup(func() { closeStore(t, filling) })
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	head, forks := 0, 0
	grow := func(to int) {
		t.Helper()
		for ; forks < to; forks++ {
			for range 4 {
				head++
				if _, err := appendTo(t, filling, "s", event("s", head)); err != nil {
					t.Fatal(err)
				}
			}
			all := []eventlog.Artifact{{Kind: "k", Seq: eventlog.Seq(head), ID: "a"}, {Kind: "l", Seq: eventlog.Seq(head), ID: "a"}, {Kind: "m", Seq: eventlog.Seq(head), ID: "a"}}
			if err := filling.PutArtifacts(t.Context(), "s", all...); err != nil {
				t.Fatal(err)
			}
			if _, err := filling.Fork(t.Context(), eventlog.ForkRequest{ParentID: "s", At: eventlog.Seq(head), NewID: fmt.Sprint("f", forks), Time: time.Unix(2, 0)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(id string) int {
		t.Helper()
		w := &work{t: t, conn: conn}
		s := open(t, dsn, pglog.Options{Tracer: w})
		if err := s.DeleteSession(t.Context(), id, 0, nil); err != nil {
			t.Fatal(err)
		}
		closeStore(t, s)
		return w.n
	}
	if _, err := appendTo(t, filling, "small", event("small", 1), event("small", 2)); err != nil {
		t.Fatal(err)
	}
	if err := filling.PutArtifacts(t.Context(), "small", eventlog.Artifact{Kind: "k", Seq: 1, ID: "a"}); err != nil {
		t.Fatal(err)
	}
	server.Exec(t, dsn, manySessions+"; ANALYZE contextd_sessions, contextd_shares, contextd_events, contextd_artifacts")
	grow(50)
	few := remove("f1")
	grow(200)
	if many := remove("f2"); many > 6*few { // of four times as many artifacts
		t.Errorf("to delete a fork goes over %d blocks and rows beside 50 forks, and %d beside 200", few, many)
	}
}
