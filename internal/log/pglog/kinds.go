package pglog

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// ArtifactKinds returns the kinds of the session's artifacts. It looks up one row of each kind.
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
	const sql = `SELECT (SELECT a.kind FROM contextd_shares h JOIN contextd_artifacts a ON a.segment = h.segment AND a.seq <= h.up_to AND a.put <= h.puts
			WHERE h.incarnation = s.incarnation AND ($2::bytea IS NULL OR a.kind > $2) ORDER BY a.kind LIMIT 1)
		FROM contextd_sessions s WHERE s.incarnation = $1`
	var kinds []string
	for after := []byte(nil); ; {
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
