package pglog

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/contextd/contextd/internal/guard"
)

// groups batches appends to many sessions. While groupsAtOnce statements run, further appends wait. Then one
// statement makes several of them in one transaction. They do not depend on each other: if a session has changed, or
// another writer has locked it, its append is left to a statement of its own.
type groups struct {
	mu      sync.Mutex
	running int
	waiting []*queued // oldest first
}

const (
	groupsAtOnce = 4
	// groupWrites and groupBytes bound a group. A write that is larger than groupBytes joins no group.
	groupWrites = 64
	groupBytes  = 1 << 20
)

// queued is a write that waits.
type queued struct {
	*write
	bytes int
	done  chan error // receives errAlone if the write must be made by itself
}

// errAlone says that a write had no part in the transaction of its group.
var errAlone = errors.New("not written with others")

// appendGroup moves those sessions of $1 that are at the versions $2, that nobody has locked and that have none of
// the events yet, and yields them. The subquery with a limit is looked up in the index for each event.
const appendGroup = `WITH wanted AS (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[]) AS w (incarnation, version, head, state)),
	events AS (SELECT * FROM unnest($5::bigint[], $6::bigint[], $7::bytea[], $8::bytea[], $9::bytea[], $10::bytea[], $11::bytea[], $12::bigint[])
		AS e (segment, seq, id_hash, digest, record, head, chain, log_bytes)),
	known AS (SELECT e.segment FROM events e CROSS JOIN LATERAL
		(SELECT 1 FROM contextd_events x WHERE x.segment = e.segment AND x.id_hash = e.id_hash LIMIT 1) AS x),
	free AS (SELECT w.incarnation AS of, w.head AS new_head, w.state AS new_state FROM wanted w JOIN contextd_sessions s ON s.incarnation = w.incarnation AND s.version = w.version
		WHERE w.incarnation NOT IN (SELECT segment FROM known) FOR UPDATE OF s SKIP LOCKED),
	moved AS (UPDATE contextd_sessions s SET version = ` + nextVersion + `, head = f.new_head, state = f.new_state
		FROM free f WHERE s.incarnation = f.of RETURNING s.incarnation, s.version, s.artifact_bytes),
	appended AS (INSERT INTO contextd_events (segment, seq, id_hash, digest, record, head, chain, log_bytes)
		SELECT e.segment, e.seq, e.id_hash, e.digest, e.record, e.head, e.chain, e.log_bytes FROM moved m JOIN events e ON e.segment = m.incarnation)
	SELECT incarnation, version, artifact_bytes FROM moved`

// runGrouped makes a write of events to an existing session: at once if few statements run, else in a group. Its
// errors are run's.
func (s *Store) runGrouped(ctx context.Context, w *write) error {
	size := 0
	for _, r := range w.records {
		size += len(r)
	}
	if size > groupBytes {
		return s.run(ctx, w)
	}
	q := s.groups.join(w, size)
	if q == nil {
		defer func() {
			if next := s.groups.next(); next != nil {
				go s.runGroups(next)
			}
		}()
		return s.run(ctx, w)
	}
	limited, cancel := s.writing(ctx)
	defer cancel()
	var err error
	select {
	case err = <-q.done:
	case <-limited.Done():
		if s.groups.quit(q) {
			return failure(ctx, limited.Err()) // nothing was sent
		}
		err = <-q.done
	}
	if errors.Is(err, errAlone) {
		return s.run(ctx, w)
	}
	return err
}

// join puts a write into the queue. If it returns nil, the caller makes the write at once and must then call next.
func (g *groups) join(w *write, size int) *queued {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running < groupsAtOnce {
		g.running++
		return nil
	}
	q := &queued{w, size, make(chan error, 1)}
	g.waiting = append(g.waiting, q)
	return q
}

// quit removes a write from the queue; false if a group has already taken it.
func (g *groups) quit(q *queued) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, q)
	if i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	return i >= 0
}

// next ends a statement and returns the writes for the following one, or nil if none wait. A group has one write for
// each session at most: further ones wait for a later group.
func (g *groups) next() (group []*queued) {
	g.mu.Lock()
	defer g.mu.Unlock()
	bytes, sessions := 0, map[int64]bool{}
	g.waiting = slices.DeleteFunc(g.waiting, func(q *queued) bool {
		of := q.session.incarnation()
		if sessions[of] || len(group) == groupWrites || bytes+q.bytes > groupBytes {
			return false
		}
		sessions[of] = true
		bytes += q.bytes
		group = append(group, q)
		return true
	})
	if len(group) == 0 {
		g.running--
	}
	return group
}

// runGroups makes the writes of a group and of the groups after it, until none wait.
func (s *Store) runGroups(group []*queued) {
	for ; len(group) > 0; group = s.groups.next() {
		err := guard.Run(s.logger, "appending a group", func() error { return s.runGroup(group) })
		for _, q := range group {
			switch {
			case err == nil || errors.Is(err, errLost):
				q.end(errAlone) // unless it was written
			default:
				s.memory.forget(q.session.info.ID)
				q.end(err)
			}
		}
	}
}

// end reports the result of the write. Only the first call counts.
func (q *queued) end(err error) {
	select {
	case q.done <- err:
	default:
	}
}

// runGroup makes writes in one transaction, and ends those that succeeded. Its errors are commit's.
func (s *Store) runGroup(group []*queued) error {
	var incarnations, versions, heads, segments, seqs, logBytes []int64
	var states, idHashes, digests, records, eventHeads, chains [][]byte
	of := make(map[int64]*queued, len(group))
	for _, q := range group {
		encoded, err := q.at.encode()
		if err != nil {
			return err
		}
		incarnation := q.session.incarnation()
		of[incarnation] = q
		incarnations = append(incarnations, incarnation)
		versions = append(versions, q.session.version)
		heads = append(heads, int64(q.at.head.Seq))
		states = append(states, encoded)
		for range q.seqs {
			segments = append(segments, incarnation)
		}
		seqs = append(seqs, q.seqs...)
		idHashes = append(idHashes, q.idHashes...)
		digests = append(digests, q.digests...)
		records = append(records, q.records...)
		eventHeads = append(eventHeads, q.heads...)
		chains = append(chains, q.chains...)
		logBytes = append(logBytes, q.logBytes...)
	}
	type moved struct{ Incarnation, Version, ArtifactBytes int64 }
	var all []moved
	err := s.commit(context.Background(), func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		rows, _ := conn.Query(ctx, appendGroup, incarnations, versions, heads, states,
			segments, seqs, idHashes, digests, records, eventHeads, chains, logBytes) // the error is the rows' as well
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[moved])
		return err
	})
	if err != nil {
		return err
	}
	for _, m := range all {
		q := of[m.Incarnation]
		s.done(q.write, m.Incarnation, m.Version, m.ArtifactBytes)
		q.end(nil)
	}
	return nil
}
