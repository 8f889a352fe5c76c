package pglog

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	eventlog "github.com/contextd/contextd/internal/log"
)

// write has what one statement adds to a session: events and artifacts. An artifact replaces the one with its key,
// unless a fork shows that one. Each slice is a column.
type write struct {
	session *session // before the write; its incarnation is 0 if the write makes it
	at      state    // after the write
	puts    int64
	// artifactBytes is the size of the added artifacts.
	artifactBytes int64

	seqs                                      []int64
	idHashes, digests, records, heads, chains [][]byte
	logBytes                                  []int64
	artifacts                                 []eventlog.Artifact
	put                                       artifactRows
}

// artifactRows are artifacts, by column.
type artifactRows struct {
	kinds  [][]byte
	seqs   []int64
	ids    [][]byte
	puts   []int64
	values [][]byte
	isNew  []bool
	// sizes are the sizes of their keys.
	sizes []int64
}

func (r *artifactRows) add(a eventlog.Artifact, put int64) {
	r.kinds = append(r.kinds, []byte(a.Kind))
	r.seqs = append(r.seqs, int64(a.Seq))
	r.ids = append(r.ids, []byte(a.ID))
	r.puts = append(r.puts, put)
	r.values = append(r.values, a.Value)
	r.isNew = append(r.isNew, a.New)
	r.sizes = append(r.sizes, int64(eventlog.Artifact{Kind: a.Kind, ID: a.ID}.Size()))
}

// Rows are looked up by key in a subquery with a limit, or with OFFSET 0, which the server does not turn into a join.
// The server estimates the rows of a session by the mean of all sessions. So if most sessions are small, it would
// rather read all rows of a session than look up a few, in each write to a large session.
const (
	// moveSession yields a row only if the session has the version that was read, and nothing that the write's
	// conditions exclude. If the server waits for another writer's lock, it checks again after that.
	moveSession = `UPDATE contextd_sessions SET version = ` + nextVersion + `, head = $3, state = $4, puts = $5, artifact_bytes = artifact_bytes + $6`
	ofVersion   = ` WHERE incarnation = $1 AND version = $2`
	// noneOf excludes events with the same ids in the session's own segment.
	noneOf = ` AND NOT EXISTS (SELECT 1 FROM unnest($8::bytea[]) AS w (id_hash) CROSS JOIN LATERAL
		(SELECT 1 FROM contextd_events x WHERE x.segment = $1 AND x.id_hash = w.id_hash LIMIT 1) AS x)`
	// makeSession yields a row only if no session has the id.
	makeSession = `INSERT INTO contextd_sessions (id, incarnation, version, info, head, state, puts, artifact_bytes)
		VALUES ($1, ` + nextIncarnation + `, ` + firstVersion + `, $2, $3, $4, $5, $6)
		ON CONFLICT (id) DO NOTHING`
	returning = ` RETURNING incarnation, version, artifact_bytes`
	shareOwn  = `owned AS (INSERT INTO contextd_shares (segment, incarnation, up_to, puts)
		SELECT incarnation, incarnation, 9223372036854775807, 9223372036854775807 FROM moved)`
	storeEvents = `appended AS (INSERT INTO contextd_events (segment, seq, id_hash, digest, record, head, chain, log_bytes)
			SELECT m.incarnation, e.seq, e.id_hash, e.digest, e.record, e.head, e.chain, e.log_bytes FROM moved m,
			unnest($7::bigint[], $8::bytea[], $9::bytea[], $10::bytea[], $11::bytea[], $12::bytea[], $13::bigint[])
			AS e (seq, id_hash, digest, record, head, chain, log_bytes))`
	artifacts = `wanted AS (SELECT * FROM unnest($14::bytea[], $15::bigint[], $16::bytea[], $17::bigint[], $18::bytea[], $19::boolean[], $20::bigint[])
			AS w (kind, seq, id, put, value, is_new, size))`
	// replaced are the versions in the session's own segment that the write replaces.
	replaced = `replaced AS (SELECT a.kind, a.seq, a.id, a.put, a.size + w.size AS size FROM wanted w CROSS JOIN LATERAL
				(SELECT a.kind, a.seq, a.id, a.put, octet_length(a.value) AS size FROM contextd_artifacts a
				WHERE a.segment = $1 AND a.kind = w.kind AND a.seq = w.seq AND a.id = w.id ORDER BY a.put DESC LIMIT 1) AS a
			WHERE NOT EXISTS (SELECT 1 FROM contextd_shares o
				WHERE o.segment = $1 AND o.incarnation <> $1 AND o.up_to >= a.seq AND o.puts >= a.put OFFSET 0))`
	lessReplaced = ` - COALESCE((SELECT SUM(size) FROM replaced), 0)::bigint`
	noneNew      = ` AND NOT EXISTS (SELECT 1 FROM wanted w JOIN contextd_shares h ON h.incarnation = $1 CROSS JOIN LATERAL
			(SELECT 1 FROM contextd_artifacts v WHERE v.segment = h.segment AND v.kind = w.kind AND v.seq = w.seq AND v.id = w.id
			AND v.seq <= h.up_to AND v.put <= h.puts LIMIT 1) AS v WHERE w.is_new)`
	removeReplaced = `removed AS (DELETE FROM contextd_artifacts a USING moved m, replaced r
			WHERE a.segment = m.incarnation AND a.kind = r.kind AND a.seq = r.seq AND a.id = r.id AND a.put = r.put)`
	storeArtifacts = `kept AS (INSERT INTO contextd_artifacts (segment, kind, seq, id, put, value)
			SELECT m.incarnation, w.kind, w.seq, w.id, w.put, w.value FROM moved m, wanted w)`
	thatMoved = ` SELECT incarnation, version, artifact_bytes FROM moved`

	appendEvents  = `WITH moved AS (` + moveSession + ofVersion + noneOf + returning + `), ` + storeEvents + thatMoved
	extendSession = `WITH ` + artifacts + `, ` + replaced + `, moved AS (` + moveSession + lessReplaced + ofVersion + noneOf + noneNew + returning + `), ` +
		storeEvents + `, ` + removeReplaced + `, ` + storeArtifacts + thatMoved
	beginSession = `WITH ` + artifacts + `, moved AS (` + makeSession + returning + `), ` + shareOwn + `, ` + storeEvents + `, ` + storeArtifacts + thatMoved
)

// begin prepares a write that puts artifacts.
func begin(target *session, all []eventlog.Artifact) *write {
	w := &write{session: target, at: target.at, puts: target.puts}
	for _, a := range all {
		a.Value = append([]byte{}, a.Value...) // nil would be NULL, and the caller may change it
		w.puts++
		w.artifactBytes += int64(a.Size())
		w.put.add(a, w.puts)
		w.artifacts = append(w.artifacts, a)
	}
	return w
}

// run makes the write. Its errors are commit's. errLost also means that an artifact with New exists already, or that
// an event's id is known.
func (s *Store) run(ctx context.Context, w *write) error {
	encoded, err := w.at.encode()
	if err != nil {
		return err
	}
	sql, first := extendSession, []any{w.session.incarnation(), w.session.version}
	switch {
	case w.session.info.Incarnation == 0:
		info, err := encodeInfo(w.session.info, nil)
		if err != nil {
			return err
		}
		sql, first = beginSession, []any{[]byte(w.session.info.ID), info}
	case len(w.artifacts) == 0:
		sql = appendEvents
	}
	args := slices.Concat(first, []any{
		int64(w.at.head.Seq), encoded, w.puts, w.artifactBytes,
		w.seqs, w.idHashes, w.digests, w.records, w.heads, w.chains, w.logBytes,
	})
	if sql != appendEvents {
		args = append(args, w.put.kinds, w.put.seqs, w.put.ids, w.put.puts, w.put.values, w.put.isNew, w.put.sizes)
	}
	var incarnation, version, artifactBytes int64
	err = s.commit(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, sql, args...).Scan(&incarnation, &version, &artifactBytes)
	})
	if err != nil {
		s.memory.forget(w.session.info.ID)
		return err
	}
	s.done(w, incarnation, version, artifactBytes)
	return nil
}

// done caches the session after a write.
func (s *Store) done(w *write, incarnation, version, artifactBytes int64) {
	now := w.session.after(w.at, incarnation, version, w.puts, artifactBytes)
	s.memory.wrote(w.session, now, w.artifacts)
	if len(w.seqs) > 0 {
		s.watch.moved(eventlog.Incarnation(incarnation))
	}
}

// after returns the session after a write.
func (s *session) after(at state, incarnation, version, puts, artifactBytes int64) *session {
	now := *s
	now.at, now.version, now.puts = at, version, puts
	now.info.Incarnation, now.info.ArtifactBytes = eventlog.Incarnation(incarnation), uint64(artifactBytes)
	now.info.Head, now.info.Turns, now.info.LogBytes = at.head.Seq, at.head.Turns, at.bytes
	now.info.UpdateTime, now.info.ChainHead = at.update, at.chainHead()
	return &now
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

// forkSession is makeSession for a fork. It makes the fork only if the parent has the version that was read, and then
// yields the parent's incarnation, and the fork's if its id was free.
const forkSession = `WITH moved AS (UPDATE contextd_sessions SET version = ` + nextVersion + ` WHERE incarnation = $7 AND version = $8 RETURNING incarnation),
	made AS (INSERT INTO contextd_sessions (id, incarnation, version, info, head, state, puts, artifact_bytes)
		SELECT $1, ` + nextIncarnation + `, ` + firstVersion + `, $2, $3, $4, $5, $6 FROM moved
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
			const sql = `WITH moved AS (` + makeSession + ` RETURNING incarnation), ` + shareOwn + ` SELECT incarnation FROM moved`
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
