package pglog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	eventlog "github.com/contextd/contextd/internal/log"
)

// validateArtifacts makes eventlog's checks, and refuses seqs that are too large for the database.
func validateArtifacts(all []eventlog.Artifact) error {
	for _, a := range all {
		if a.Seq > math.MaxInt64 {
			return &eventlog.InvalidError{Field: "artifact.seq", Reason: fmt.Sprintf("must be at most %d", int64(math.MaxInt64))}
		}
	}
	return eventlog.ValidateArtifacts(all)
}

// number returns a seq as a bigint. A seq that is too large becomes the largest bigint, which is after every event.
func number(seq eventlog.Seq) int64 { return int64(min(seq, math.MaxInt64)) }

func keyOf(a eventlog.Artifact) string { return fmt.Sprintf("%s/%d/%s", a.Kind, a.Seq, a.ID) }

// PutArtifacts stores copies of the artifacts in one statement.
func (s *Store) PutArtifacts(ctx context.Context, id string, all ...eventlog.Artifact) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	if k := s.memory.get(id); k != nil && len(all) > 0 && validateArtifacts(all) == nil && eventlog.AllOf(all, k.session.info.Incarnation) {
		if err := s.run(ctx, begin(k.session, all)); !errors.Is(err, errLost) {
			return err
		}
	}
	return s.retried(ctx, id, "the artifacts", func() error {
		target, err := s.load(ctx, id)
		if err != nil {
			return err
		}
		if err := validateArtifacts(all); err != nil || len(all) == 0 {
			return err
		}
		if !eventlog.AllOf(all, target.info.Incarnation) {
			return eventlog.NoSession(id)
		}
		if err = s.run(ctx, begin(target, all)); errors.Is(err, errLost) {
			err = s.conflictOf(ctx, target, all)
		}
		return err
	})
}

// conflictOf returns why a write of artifacts lost: a *eventlog.ConflictError if an artifact with New exists already,
// else errLost.
func (s *Store) conflictOf(ctx context.Context, of *session, all []eventlog.Artifact) error {
	for _, a := range all {
		if !a.New {
			continue
		}
		_, err := s.artifact(ctx, of.info.ID, a.Kind, a.Seq, a.ID)
		switch {
		case err == nil:
			return &eventlog.ConflictError{Session: of.info.ID, What: "artifact " + keyOf(a)}
		case !eventlog.IsMissing(err):
			return err
		}
	}
	return errLost
}

// Artifact returns one artifact.
func (s *Store) Artifact(ctx context.Context, id, kind string, seq eventlog.Seq, artifactID string) (eventlog.Artifact, error) {
	if err := s.enter(ctx); err != nil {
		return eventlog.Artifact{}, err
	}
	defer s.leave()
	if k, _ := s.looked(ctx, id); k != nil {
		if t, ok := k.tails[kind]; ok && t.covers(seq, artifactID) {
			for _, a := range t.artifacts {
				if a.Seq == seq && a.ID == artifactID {
					return a, nil
				}
			}
			return eventlog.Artifact{}, &eventlog.NotFoundError{Kind: "artifact", Name: keyOf(eventlog.Artifact{Kind: kind, Seq: seq, ID: artifactID})}
		}
	}
	return s.artifact(ctx, id, kind, seq, artifactID)
}

func (s *Store) artifact(ctx context.Context, id, kind string, seq eventlog.Seq, artifactID string) (eventlog.Artifact, error) {
	limited, cancel := s.reading(ctx)
	defer cancel()
	const sql = `SELECT (SELECT a.value FROM contextd_shares h JOIN contextd_artifacts a ON a.segment = h.segment AND a.seq <= h.up_to AND a.put <= h.puts
			WHERE h.incarnation = s.incarnation AND a.kind = $2 AND a.seq = $3 AND a.id = $4 ORDER BY a.segment DESC, a.put DESC LIMIT 1)
		FROM contextd_sessions s WHERE s.id = $1`
	var value []byte
	err := s.pool.QueryRow(limited, sql, []byte(id), []byte(kind), number(seq), []byte(artifactID)).Scan(&value)
	found := eventlog.Artifact{Kind: kind, Seq: seq, ID: artifactID, Value: value}
	switch {
	case err == pgx.ErrNoRows: //nolint:errorlint // It is returned as it is.
		return eventlog.Artifact{}, eventlog.NoSession(id)
	case err != nil:
		return eventlog.Artifact{}, failure(ctx, err)
	case value == nil:
		return eventlog.Artifact{}, &eventlog.NotFoundError{Kind: "artifact", Name: keyOf(found)}
	}
	return found, nil
}

const (
	// The first page has firstPage rows. Pages grow up to lastPage rows, or up to pageBytes.
	firstPage, lastPage = 8, 512
	// pageBytes is about how many bytes a page has.
	pageBytes = 1 << 20
)

// nextPage returns how many rows to read after a page with these numbers of rows and bytes.
func nextPage(rows, size int) int { return max(1, min(2*rows, lastPage, rows*pageBytes/max(size, 1))) }

// Artifacts yields the artifacts of the query.
func (s *Store) Artifacts(ctx context.Context, id string, q eventlog.ArtifactQuery) iter.Seq2[eventlog.Artifact, error] {
	return func(yield func(eventlog.Artifact, error) bool) {
		last, more, err := s.knownArtifacts(ctx, id, q, yield)
		if err != nil {
			yield(eventlog.Artifact{}, err)
		}
		if !more || err != nil {
			return
		}
		if last != nil {
			q.After = last
		}
		var of, version int64
		for limit := firstPage; ; {
			page, err := s.artifactPage(ctx, id, &of, &version, q, limit)
			if err != nil {
				yield(eventlog.Artifact{}, err)
				return
			}
			size := 0
			for _, a := range page {
				if err := ctx.Err(); err != nil {
					yield(eventlog.Artifact{}, err)
					return
				}
				if size += len(a.Value); !yield(a, nil) {
					return
				}
			}
			if len(page) < limit {
				return
			}
			q.After, limit = &page[limit-1], nextPage(limit, size)
		}
	}
}

// knownArtifacts yields the artifacts of the query that are cached. more is set if others may follow, which come
// after last (or none was yielded, if last is nil).
func (s *Store) knownArtifacts(ctx context.Context, id string, q eventlog.ArtifactQuery, yield func(eventlog.Artifact, error) bool) (last *eventlog.Artifact, more bool, err error) {
	k, _ := s.looked(ctx, id)
	if k == nil {
		return nil, true, ctx.Err()
	}
	t, ok := k.tails[q.Kind]
	if !ok {
		if t, err = s.readTail(ctx, id, q.Kind); err != nil {
			return nil, false, err
		}
	}
	all := t.covers(q.From, "") || q.After != nil && !q.Reverse && t.covers(q.After.Seq, q.After.ID)
	if !all && !q.Reverse {
		return nil, true, nil
	}
	for i := range t.artifacts {
		a := &t.artifacts[i]
		if q.Reverse {
			a = &t.artifacts[len(t.artifacts)-1-i]
		}
		if !selects(q, *a) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		if !yield(*a, nil) {
			return nil, false, nil
		}
		last = a
	}
	return last, !all, nil
}

// readTail reads the newest artifacts of a kind into the cache.
func (s *Store) readTail(ctx context.Context, id, kind string) (tail, error) {
	var of, version int64
	page, err := s.artifactPage(ctx, id, &of, &version, eventlog.ArtifactQuery{Kind: kind, Reverse: true}, tailLength)
	if err != nil {
		return tail{}, err
	}
	slices.Reverse(page)
	t := tail{page, len(page) < tailLength}
	s.memory.read(id, of, version, kind, t)
	return t, nil
}

// artifactPage returns up to limit artifacts of the query. The first call sets of to the session's incarnation; later
// calls fail if that was deleted. version is set to the session's version when the page was read.
func (s *Store) artifactPage(ctx context.Context, id string, of, version *int64, q eventlog.ArtifactQuery, limit int) ([]eventlog.Artifact, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	limited, cancel := s.reading(ctx)
	defer cancel()
	order, beyond := "ASC", ">"
	if q.Reverse {
		order, beyond = "DESC", "<"
	}
	to := number(q.To)
	if to == 0 {
		to = math.MaxInt64
	}
	args := []any{[]byte(id), *of, []byte(q.Kind), number(q.From), to, limit}
	if q.After != nil {
		beyond = ` AND (a.seq, a.id) ` + beyond + ` ($7, $8)`
		args = append(args, number(q.After.Seq), []byte(q.After.ID))
	} else {
		beyond = ""
	}
	// Of the versions that the session shows, the newest in the newest segment counts. For each segment the first
	// ones are looked up in the index. The values are read only of those that come first in all segments. OFFSET
	// prevents the server from making a join with the older versions, which would read all artifacts of the kind.
	sql := `SELECT s.incarnation, s.version, p.seq, p.id, (SELECT v.value FROM contextd_artifacts v
			WHERE v.segment = p.segment AND v.kind = $3 AND v.seq = p.seq AND v.id = p.id AND v.put = p.put)
		FROM contextd_sessions s LEFT JOIN LATERAL (
			SELECT DISTINCT ON (o.seq, o.id) h.segment, o.seq, o.id, o.put FROM contextd_shares h CROSS JOIN LATERAL (
				SELECT a.seq, a.id, a.put FROM contextd_artifacts a
				WHERE a.segment = h.segment AND a.kind = $3 AND a.seq >= $4 AND a.seq <= LEAST($5, h.up_to) AND a.put <= h.puts` + beyond + `
				AND NOT EXISTS (SELECT 1 FROM contextd_artifacts n WHERE n.segment = a.segment AND n.kind = $3
					AND n.seq = a.seq AND n.id = a.id AND n.put > a.put AND n.put <= h.puts OFFSET 0)
				ORDER BY a.seq ` + order + `, a.id ` + order + ` LIMIT $6
			) o WHERE h.incarnation = s.incarnation
			ORDER BY o.seq ` + order + `, o.id ` + order + `, h.segment DESC LIMIT $6
		) p ON true WHERE s.id = $1 AND ($2 = 0::bigint OR s.incarnation = $2) ORDER BY p.seq ` + order + `, p.id ` + order
	rows, _ := s.pool.Query(limited, sql, args...) // the error is the rows' as well
	var page []eventlog.Artifact
	var seq *int64
	var name, value []byte
	tag, err := pgx.ForEachRow(rows, []any{of, version, &seq, &name, &value}, func() error {
		if seq != nil {
			page = append(page, eventlog.Artifact{Kind: q.Kind, Seq: eventlog.Seq(*seq), ID: string(name), Value: value})
		}
		return nil
	})
	if err == nil && tag.RowsAffected() == 0 {
		return nil, eventlog.NoSession(id)
	}
	return page, failure(ctx, err)
}

// ArtifactKinds returns the kinds of the session's artifacts. For each kind it looks up one row of each segment in
// the index.
func (s *Store) ArtifactKinds(ctx context.Context, id string) ([]string, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	found, err := s.load(ctx, id)
	if err != nil {
		return nil, err
	}
	limited, cancel := s.reading(ctx)
	defer cancel()
	const sql = `SELECT (SELECT k.kind FROM contextd_shares h CROSS JOIN LATERAL (SELECT a.kind FROM contextd_artifacts a
			WHERE a.segment = h.segment AND a.seq <= h.up_to AND a.put <= h.puts AND a.kind > $2 ORDER BY a.kind LIMIT 1) AS k
			WHERE h.incarnation = s.incarnation ORDER BY k.kind LIMIT 1)
		FROM contextd_sessions s WHERE s.incarnation = $1`
	var kinds []string
	for after := []byte{}; ; { // no kind is empty
		var kind []byte
		err := s.pool.QueryRow(limited, sql, found.incarnation(), after).Scan(&kind)
		switch {
		case err == pgx.ErrNoRows: //nolint:errorlint // It is returned as it is.
			return nil, eventlog.NoSession(id)
		case err != nil:
			return nil, failure(ctx, err)
		case kind == nil:
			return kinds, nil
		}
		kinds, after = append(kinds, string(kind)), kind
	}
}
