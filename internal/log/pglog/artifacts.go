package pglog

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/jackc/pgx/v5"

	eventlog "github.com/contextd/contextd/internal/log"
)

// validateArtifacts is eventlog's, and for what the database cannot count.
func validateArtifacts(all []eventlog.Artifact) error {
	for _, a := range all {
		if a.Seq > math.MaxInt64 {
			return &eventlog.InvalidError{Field: "artifact.seq", Reason: fmt.Sprintf("must be at most %d", int64(math.MaxInt64))}
		}
	}
	return eventlog.ValidateArtifacts(all)
}

// number is a seq as the database has it. One that is too great for it is after all that there are.
func number(seq eventlog.Seq) int64 { return int64(min(seq, math.MaxInt64)) }

func keyOf(a eventlog.Artifact) string { return fmt.Sprintf("%s/%d/%s", a.Kind, a.Seq, a.ID) }

// PutArtifacts stores copies of the artifacts in one statement.
func (s *Store) PutArtifacts(ctx context.Context, id string, all ...eventlog.Artifact) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.retried(ctx, id, "the artifacts", func() error {
		target, err := s.load(ctx, id)
		if err != nil {
			return err
		}
		if err := validateArtifacts(all); err != nil || len(all) == 0 {
			return err
		}
		if !eventlog.AllOf(all, target.info.Incarnation) {
			return noSession(id)
		}
		w, err := s.begin(ctx, target, all)
		if err != nil {
			return err
		}
		return s.run(ctx, w)
	})
}

// replace takes the version that an artifact replaces out of the store, unless a fork shows it. It
// returns a *eventlog.ConflictError if there is one although the artifact is to be new.
func (s *Store) replace(ctx context.Context, w *write, a eventlog.Artifact) error {
	limited, cancel := s.reading(ctx)
	defer cancel()
	const sql = `SELECT v.segment, v.put, octet_length(v.value), EXISTS (
			SELECT 1 FROM contextd_shares o WHERE o.segment = v.segment AND o.incarnation <> $1 AND o.up_to >= v.seq AND o.puts >= v.put)
		FROM contextd_shares h JOIN contextd_artifacts v ON v.segment = h.segment AND v.seq <= h.up_to AND v.put <= h.puts
		WHERE h.incarnation = $1 AND v.kind = $2 AND v.seq = $3 AND v.id = $4 ORDER BY v.segment DESC, v.put DESC LIMIT 1`
	own := w.session.incarnation()
	var segment, put, size int64
	var shown bool
	err := s.pool.QueryRow(limited, sql, own, []byte(a.Kind), int64(a.Seq), []byte(a.ID)).Scan(&segment, &put, &size, &shown)
	switch {
	case err == pgx.ErrNoRows: //nolint:errorlint // It is returned as it is.
		return nil
	case err != nil:
		return failure(ctx, err)
	case a.New:
		return &eventlog.ConflictError{Session: w.session.info.ID, What: "artifact " + keyOf(a)}
	case segment == own && !shown:
		w.replaced.add(a, put)
		w.artifactBytes -= size + int64(eventlog.Artifact{Kind: a.Kind, ID: a.ID}.Size())
	}
	return nil
}

// Artifact returns one artifact.
func (s *Store) Artifact(ctx context.Context, id, kind string, seq eventlog.Seq, artifactID string) (eventlog.Artifact, error) {
	if err := s.enter(ctx); err != nil {
		return eventlog.Artifact{}, err
	}
	defer s.leave()
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
		return eventlog.Artifact{}, noSession(id)
	case err != nil:
		return eventlog.Artifact{}, failure(ctx, err)
	case value == nil:
		return eventlog.Artifact{}, &eventlog.NotFoundError{Kind: "artifact", Name: keyOf(found)}
	}
	return found, nil
}

const (
	// A page begins with firstPage rows and goes up to lastPage, by what rows take.
	firstPage, lastPage = 8, 512
	// pageBytes is about how much a page holds.
	pageBytes = 1 << 20
)

// nextPage is how many rows to read after a page of so many rows and bytes.
func nextPage(rows, size int) int { return max(1, min(2*rows, lastPage, rows*pageBytes/max(size, 1))) }

// Artifacts yields the artifacts of the query.
func (s *Store) Artifacts(ctx context.Context, id string, q eventlog.ArtifactQuery) iter.Seq2[eventlog.Artifact, error] {
	return func(yield func(eventlog.Artifact, error) bool) {
		var of int64
		var after *eventlog.Artifact
		for limit := firstPage; ; {
			page, err := s.artifactPage(ctx, id, &of, q, after, limit)
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
			after, limit = &page[limit-1], nextPage(limit, size)
		}
	}
}

// artifactPage returns up to limit artifacts that follow after. of is filled in by the first call: the
// session must be there until the last.
func (s *Store) artifactPage(ctx context.Context, id string, of *int64, q eventlog.ArtifactQuery, after *eventlog.Artifact, limit int) ([]eventlog.Artifact, error) {
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
	if after != nil {
		beyond = ` AND (a.seq, a.id) ` + beyond + ` ($7, $8)`
		args = append(args, int64(after.Seq), []byte(after.ID))
	} else {
		beyond = ""
	}
	// Of the versions that the session shows, that of the newest segment counts, and in it the newest.
	sql := `SELECT s.incarnation, p.seq, p.id, p.value FROM contextd_sessions s LEFT JOIN LATERAL (
			SELECT a.seq, a.id, a.value FROM contextd_shares h
			JOIN contextd_artifacts a ON a.segment = h.segment AND a.seq <= h.up_to AND a.put <= h.puts
			WHERE h.incarnation = s.incarnation AND a.kind = $3 AND a.seq >= $4 AND a.seq <= $5` + beyond + `
			AND NOT EXISTS (SELECT 1 FROM contextd_shares g
				JOIN contextd_artifacts n ON n.segment = g.segment AND n.seq <= g.up_to AND n.put <= g.puts
				WHERE g.incarnation = s.incarnation AND n.kind = a.kind AND n.seq = a.seq AND n.id = a.id
				AND (n.segment > a.segment OR n.segment = a.segment AND n.put > a.put))
			ORDER BY a.seq ` + order + `, a.id ` + order + ` LIMIT $6
		) p ON true WHERE s.id = $1 AND ($2 = 0 OR s.incarnation = $2) ORDER BY p.seq ` + order + `, p.id ` + order
	rows, _ := s.pool.Query(limited, sql, args...) // the error is the rows' as well
	var page []eventlog.Artifact
	var seq *int64
	var name, value []byte
	tag, err := pgx.ForEachRow(rows, []any{of, &seq, &name, &value}, func() error {
		if seq != nil {
			page = append(page, eventlog.Artifact{Kind: q.Kind, Seq: eventlog.Seq(*seq), ID: string(name), Value: value})
		}
		return nil
	})
	if err == nil && tag.RowsAffected() == 0 {
		return nil, noSession(id)
	}
	return page, failure(ctx, err)
}
