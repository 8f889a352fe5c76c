package pglog

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// ArtifactKinds returns the kinds of the session's artifacts. Of each kind one row of each segment is looked up in the index.
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
			return nil, noSession(id)
		case err != nil:
			return nil, failure(ctx, err)
		case kind == nil:
			return kinds, nil
		}
		kinds, after = append(kinds, string(kind)), kind
	}
}
