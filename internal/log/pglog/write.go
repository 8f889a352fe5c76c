package pglog

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	eventlog "github.com/contextd/contextd/internal/log"
)

// write is what one statement changes of a session: events and artifacts that are added, and versions
// of artifacts that nobody shows any more. Each slice is a column.
type write struct {
	session       *session // as it was read; its incarnation is 0 if the write makes it
	at            state    // after the write
	puts          int64
	artifactBytes int64

	seqs                                      []int64
	idHashes, digests, records, heads, chains [][]byte
	logBytes                                  []int64
	replaced, kept                            artifactRows
}

// artifactRows are versions of artifacts, by column.
type artifactRows struct {
	kinds  [][]byte
	seqs   []int64
	ids    [][]byte
	puts   []int64
	values [][]byte
}

func (r *artifactRows) add(a eventlog.Artifact, put int64) {
	r.kinds = append(r.kinds, []byte(a.Kind))
	r.seqs = append(r.seqs, int64(a.Seq))
	r.ids = append(r.ids, []byte(a.ID))
	r.puts = append(r.puts, put)
	r.values = append(r.values, append([]byte{}, a.Value...)) // nil would be NULL
}

const (
	// moveSession yields a row only where the session is at the version that was read. A server
	// that has to wait for another writer looks again afterwards.
	moveSession = `UPDATE contextd_sessions SET version = version + 1, head = $3, state = $4, puts = $5, artifact_bytes = $6
		WHERE incarnation = $1 AND version = $2 RETURNING incarnation`
	// makeSession yields a row only where no session has the id.
	makeSession = `INSERT INTO contextd_sessions (id, incarnation, version, info, head, state, puts, artifact_bytes)
		VALUES ($1, nextval('contextd_incarnations'), 0, $2, $3, $4, $5, $6)
		ON CONFLICT (id) DO NOTHING RETURNING incarnation`
	shareOwn = `owned AS (INSERT INTO contextd_shares (segment, incarnation, up_to, puts)
		SELECT incarnation, incarnation, 9223372036854775807, 9223372036854775807 FROM moved)`
	storeRows = `appended AS (INSERT INTO contextd_events (segment, seq, id_hash, digest, record, head, chain, log_bytes)
			SELECT m.incarnation, e.seq, e.id_hash, e.digest, e.record, e.head, e.chain, e.log_bytes FROM moved m,
			unnest($7::bigint[], $8::bytea[], $9::bytea[], $10::bytea[], $11::bytea[], $12::bytea[], $13::bigint[])
			AS e (seq, id_hash, digest, record, head, chain, log_bytes)),
		removed AS (DELETE FROM contextd_artifacts a USING moved m,
			unnest($14::bytea[], $15::bigint[], $16::bytea[], $17::bigint[]) AS r (kind, seq, id, put)
			WHERE a.segment = m.incarnation AND a.kind = r.kind AND a.seq = r.seq AND a.id = r.id AND a.put = r.put),
		kept AS (INSERT INTO contextd_artifacts (segment, kind, seq, id, put, value)
			SELECT m.incarnation, a.kind, a.seq, a.id, a.put, a.value FROM moved m,
			unnest($18::bytea[], $19::bigint[], $20::bytea[], $21::bigint[], $22::bytea[]) AS a (kind, seq, id, put, value))
		SELECT incarnation FROM moved`

	extendSession = `WITH moved AS (` + moveSession + `), ` + storeRows
	beginSession  = `WITH moved AS (` + makeSession + `), ` + shareOwn + `, ` + storeRows
)

// begin prepares a write that puts artifacts, whose conditions are checked.
func (s *Store) begin(ctx context.Context, target *session, all []eventlog.Artifact) (*write, error) {
	w := &write{session: target, at: target.at, puts: target.puts, artifactBytes: int64(target.info.ArtifactBytes)}
	for _, a := range all {
		if target.info.Incarnation != 0 {
			if err := s.replace(ctx, w, a); err != nil {
				return nil, err
			}
		}
		w.puts++
		w.artifactBytes += int64(a.Size())
		w.kept.add(a, w.puts)
	}
	return w, nil
}

// run makes the write; its errors are those of commit.
func (s *Store) run(ctx context.Context, w *write) error {
	encoded, err := w.at.encode()
	if err != nil {
		return err
	}
	sql, first := extendSession, []any{w.session.incarnation(), w.session.version}
	if w.session.info.Incarnation == 0 {
		info, err := encodeInfo(w.session.info, nil)
		if err != nil {
			return err
		}
		sql, first = beginSession, []any{[]byte(w.session.info.ID), info}
	}
	args := slices.Concat(first, []any{
		int64(w.at.head.Seq), encoded, w.puts, w.artifactBytes,
		w.seqs, w.idHashes, w.digests, w.records, w.heads, w.chains, w.logBytes,
		w.replaced.kinds, w.replaced.seqs, w.replaced.ids, w.replaced.puts,
		w.kept.kinds, w.kept.seqs, w.kept.ids, w.kept.puts, w.kept.values,
	})
	var incarnation int64
	err = s.commit(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, sql, args...).Scan(&incarnation)
	})
	if err == nil && len(w.seqs) > 0 {
		s.watch.moved(eventlog.Incarnation(incarnation))
	}
	return err
}

// CreateSession makes an empty session.
func (s *Store) CreateSession(ctx context.Context, from eventlog.Session) (made eventlog.Session, err error) {
	if err := s.enter(ctx); err != nil {
		return eventlog.Session{}, err
	}
	defer s.leave()
	if err := from.Validate(); err != nil {
		return eventlog.Session{}, err
	}
	from = eventlog.Session{ID: from.ID, CreateTime: from.CreateTime.UTC().Round(0), Labels: from.Labels, Settings: from.Settings}
	err = s.retried(ctx, from.ID, "its creation", func() error {
		made, err = s.make(ctx, from, state{}, nil, nil)
		return err
	})
	return made, err
}

// forkSession is makeSession where the parent, at the version that was read, is still there. It
// yields the parent's incarnation where it is, and the fork's where the id was free.
const forkSession = `WITH moved AS (UPDATE contextd_sessions SET version = version + 1 WHERE incarnation = $7 AND version = $8 RETURNING incarnation),
	made AS (INSERT INTO contextd_sessions (id, incarnation, version, info, head, state, puts, artifact_bytes)
		SELECT $1, nextval('contextd_incarnations'), 0, $2, $3, $4, $5, $6 FROM moved
		ON CONFLICT (id) DO NOTHING RETURNING incarnation),
	owned AS (INSERT INTO contextd_shares (segment, incarnation, up_to, puts)
		SELECT incarnation, incarnation, 9223372036854775807, 9223372036854775807 FROM made),
	shared AS (INSERT INTO contextd_shares (segment, incarnation, up_to, puts)
		SELECT l.segment, m.incarnation, l.up_to, l.puts FROM made m, unnest($9::bigint[], $10::bigint[], $11::bigint[]) AS l (segment, up_to, puts))
	SELECT moved.incarnation, (SELECT incarnation FROM made) FROM moved`

// make makes a session, as a fork of a parent if there is one.
func (s *Store) make(ctx context.Context, from eventlog.Session, at state, parent *session, shared []link) (eventlog.Session, error) {
	at.update = from.CreateTime
	info, err := encodeInfo(from, shared)
	if err != nil {
		return eventlog.Session{}, err
	}
	encoded, err := at.encode()
	if err != nil {
		return eventlog.Session{}, err
	}
	args := []any{[]byte(from.ID), info, int64(at.head.Seq), encoded, int64(0), int64(from.ArtifactBytes)}
	c := columns{id: []byte(from.ID), info: info, state: encoded, head: int64(at.head.Seq), artifactSize: int64(from.ArtifactBytes)}
	exists := false
	err = s.commit(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		if parent == nil {
			const sql = `WITH moved AS (` + makeSession + `), ` + shareOwn + ` SELECT incarnation FROM moved`
			err := conn.QueryRow(ctx, sql, args...).Scan(&c.incarnation)
			exists = errors.Is(err, pgx.ErrNoRows)
			return err
		}
		columns := make([][]int64, 3)
		for _, l := range shared {
			for i, v := range []int64{l.segment, l.upTo, l.puts} {
				columns[i] = append(columns[i], v)
			}
		}
		var of int64
		var made *int64
		err := conn.QueryRow(ctx, forkSession, slices.Concat(args, []any{parent.incarnation(), parent.version, columns[0], columns[1], columns[2]})...).Scan(&of, &made)
		if exists = err == nil && made == nil; made != nil {
			c.incarnation = *made
		}
		return err
	})
	if exists {
		if err = s.confirm(ctx, from.ID, true); err == nil {
			err = &eventlog.ExistsError{Kind: "session", Name: from.ID}
		}
	}
	if err != nil {
		return eventlog.Session{}, err
	}
	made, err := c.session()
	if err != nil {
		return eventlog.Session{}, err
	}
	return made.info, nil
}
