package pglog

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// copying is the version of a row of contextd_schema that is there until all of another store was copied into this one,
// where the copy began with an empty one. Programs that do not know it take it for a schema of a later program.
const copying = `1099511627776`

// ErrCopying says that a store may have only a part of what is copied into it.
var ErrCopying = errors.New("a copy into this database is under way or was interrupted: the same contextd copy goes on with it")

// mark marks a store without sessions for a copy, or refuses one that is marked.
func (s *Store) mark(ctx context.Context, conn *pgx.Conn) error {
	if !s.opts.Copying {
		var marked bool
		if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM contextd_schema WHERE version = `+copying+`)`).Scan(&marked); err != nil {
			return err
		}
		if marked {
			return ErrCopying
		}
		return nil
	}
	_, err := conn.Exec(ctx, `INSERT INTO contextd_schema (version, name) SELECT `+copying+`, 'copying' WHERE NOT EXISTS (SELECT 1 FROM contextd_sessions) ON CONFLICT DO NOTHING`)
	if sqlState(err) == insufficientPrivilege {
		s.logger.Warn("the database's role may not mark the copy as incomplete: start no daemon on it before the copy has ended")
		return nil
	}
	return err
}

// Copied says that all was copied into a store that was opened with Options.Copying: from now on it is opened without,
// too.
func (s *Store) Copied(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	limited, cancel := s.writing(ctx)
	defer cancel()
	err := s.pool.Exec(limited, `DELETE FROM contextd_schema WHERE version = `+copying)
	if sqlState(err) == insufficientPrivilege {
		return nil // it could not be marked either
	}
	return failure(ctx, err)
}
