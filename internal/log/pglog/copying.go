package pglog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// copying is the version of a row of contextd_schema that marks the target of an unfinished copy into an empty store.
// The row's name is the source's. Programs that do not know the row treat the schema as one of a later program.
const copying = `1099511627776`

// CopyingError says that a store may have only a part of the store that is copied into it.
type CopyingError struct {
	From string // the store that is copied
}

func (e *CopyingError) Error() string {
	return fmt.Sprintf("a copy of %s into this database is under way or was interrupted: contextd copy goes on with it", e.From)
}

// mark marks a store without sessions as the target of a copy, or refuses one that is marked for another copy.
func (s *Store) mark(ctx context.Context, conn *pgx.Conn) error {
	var began string
	err := conn.QueryRow(ctx, `SELECT COALESCE(MAX(name), '') FROM contextd_schema WHERE version = `+copying).Scan(&began)
	if err != nil {
		return err
	}
	if began != "" && began != s.opts.Copying {
		return &CopyingError{began}
	}
	if s.opts.Copying == "" {
		return nil
	}
	_, err = conn.Exec(ctx, `INSERT INTO contextd_schema (version, name) SELECT `+copying+`, $1 WHERE NOT EXISTS (SELECT 1 FROM contextd_sessions) ON CONFLICT DO NOTHING`, s.opts.Copying)
	if sqlState(err) == insufficientPrivilege {
		s.logger.Warn("the database's role may not mark the copy as incomplete: start no daemon on it before the copy has ended")
		return nil
	}
	return err
}

// Copied says that the copy into a store that was opened with Options.Copying is complete. From now on the store can
// be opened without that option, too.
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
