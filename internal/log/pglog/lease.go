package pglog

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	eventlog "github.com/contextd/contextd/internal/log"
)

// takeLease yields a row if the session exists; the row says whether this process now has the lease. If several
// processes ask at once, the later ones see what the first one wrote. A lease that ends much later than one that is
// taken now was taken before the clock was set back, and does not count.
const takeLease = `WITH wanted AS (SELECT incarnation FROM contextd_sessions WHERE id = $1 AND ($2 = 0::bigint OR incarnation = $2)),
	taken AS (INSERT INTO contextd_leases AS l (incarnation, work, holder, expires)
		SELECT incarnation, $3, $4, clock_timestamp() + $5 FROM wanted
		ON CONFLICT (incarnation, work) DO UPDATE SET holder = excluded.holder, expires = excluded.expires
		WHERE l.holder = excluded.holder OR l.expires <= clock_timestamp() OR l.expires > clock_timestamp() + 2 * $5 RETURNING 1)
	SELECT EXISTS (SELECT 1 FROM taken) FROM wanted`

// Lease writes one row, by the database's clock.
func (s *Store) Lease(ctx context.Context, id string, of eventlog.Incarnation, work string, d time.Duration) (has bool, err error) {
	if err := s.enter(ctx); err != nil {
		return false, err
	}
	defer s.leave()
	err = s.retried(ctx, id, "the lease", func() error {
		limited, cancel := s.writing(ctx)
		defer cancel()
		err := s.pool.QueryRow(limited, takeLease, []byte(id), int64(of), []byte(work), s.holder, d).Scan(&has)
		switch state := sqlState(err); {
		case err == pgx.ErrNoRows, state == foreignKeyViolation: //nolint:errorlint // It is returned as it is.
			return eventlog.NoSession(id)
		case mayRetry(state):
			return errLost
		}
		return failure(ctx, err)
	})
	return has, err
}

// Release removes the row.
func (s *Store) Release(ctx context.Context, id string, of eventlog.Incarnation, work string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	limited, cancel := s.writing(ctx)
	defer cancel()
	const sql = `DELETE FROM contextd_leases WHERE work = $3 AND holder = $4 AND incarnation IN (
		SELECT incarnation FROM contextd_sessions WHERE id = $1 AND ($2 = 0::bigint OR incarnation = $2))`
	err := s.pool.Exec(limited, sql, []byte(id), int64(of), []byte(work), s.holder)
	return failure(ctx, err)
}
