package pglog

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations are the steps from an empty schema to this program's. The first has number 1.
var migrations = func() (all []migration) {
	paths, _ := fs.Glob(migrationFiles, "migrations/*.sql")
	for _, path := range paths { // in the order of their names
		text, _ := migrationFiles.ReadFile(path)
		all = append(all, migration{name: strings.TrimSuffix(strings.TrimPrefix(path, "migrations/"), ".sql"), sql: string(text)})
	}
	return all
}()

type migration struct{ name, sql string }

// SchemaError says that the database's schema is not the one that this program needs.
type SchemaError struct {
	// Version is the schema's version, Known the newest version that this program knows.
	Version, Known int
	// Foreign is set if tables with the store's names are not the store's, and says which.
	Foreign error
}

// Unwrap returns Foreign.
func (e *SchemaError) Unwrap() error { return e.Foreign }

func (e *SchemaError) Error() string {
	if e.Foreign != nil {
		return fmt.Sprintf("the database's schema holds something other than a contextd store: %v", e.Foreign)
	}
	if e.Version > e.Known {
		return fmt.Sprintf("the database's schema has version %d and this contextd knows versions up to %d: run the newer contextd that migrated it", e.Version, e.Known)
	}
	return fmt.Sprintf("the database's schema has version %d and this contextd needs %d: it must be migrated first", e.Version, e.Known)
}

// querier is a connection, a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// schemaVersion returns the number of the newest migration that was applied; 0 if there is none.
func schemaVersion(ctx context.Context, q querier) (version int, err error) {
	err = q.QueryRow(ctx, `SELECT COALESCE(MAX(version), 0) FROM contextd_schema WHERE version <> `+copying).Scan(&version)
	switch sqlState(err) {
	case undefinedTable:
		return 0, nil
	case undefinedColumn:
		return 0, &SchemaError{Foreign: err}
	}
	return version, err
}

// checkSchema returns a *SchemaError unless the schema is the one that this program needs.
func checkSchema(ctx context.Context, q querier) error {
	version, err := schemaVersion(ctx, q)
	if err == nil && version != len(migrations) {
		err = &SchemaError{Version: version, Known: len(migrations)}
	}
	return err
}

// migrateAttempts is how often a step is tried if other processes try it, too.
const migrateAttempts = 100

// migrate applies the missing migrations, each in a transaction of its own. If several processes migrate at once,
// each step is made by one of them.
func migrate(ctx context.Context, conn *pgx.Conn) error {
	var lost error
	for range migrateAttempts {
		version, err := schemaVersion(ctx, conn)
		switch {
		case err != nil:
			return err
		case version > len(migrations):
			return &SchemaError{Version: version, Known: len(migrations)}
		case version == len(migrations):
			return nil
		}
		err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return migrateOnce(ctx, tx) })
		switch state := sqlState(err); {
		case err == nil:
		case mayRetry(state), state == uniqueViolation, state == duplicateObject, state == duplicateTable && present(ctx, conn):
			lost = err // another process was there first
		case state == duplicateTable, state == undefinedColumn:
			return &SchemaError{Foreign: err}
		default:
			return err
		}
	}
	return &SchemaError{Foreign: lost}
}

// present reports whether the table of migrations exists.
func present(ctx context.Context, q querier) bool {
	version, err := schemaVersion(ctx, q)
	return err == nil && version > 0
}

// migrateOnce applies the next migration, if there is one. Processes that migrate at once queue for the lock of the
// row with version 0.
func migrateOnce(ctx context.Context, tx pgx.Tx) error {
	const table = `CREATE TABLE IF NOT EXISTS contextd_schema (version bigint PRIMARY KEY, name text NOT NULL, applied timestamptz NOT NULL DEFAULT now())`
	const queue = `INSERT INTO contextd_schema (version, name) VALUES (0, 'empty') ON CONFLICT (version) DO UPDATE SET name = 'empty'`
	for _, sql := range []string{table, queue} {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}
	version, err := schemaVersion(ctx, tx)
	if err != nil || version >= len(migrations) {
		return err
	}
	next := migrations[version]
	if _, err := tx.Exec(ctx, next.sql); err != nil {
		return fmt.Errorf("migration %s: %w", next.name, err)
	}
	_, err = tx.Exec(ctx, `INSERT INTO contextd_schema (version, name) VALUES ($1, $2)`, version+1, next.name)
	return err
}

// The server's codes of failed statements.
const (
	undefinedTable        = "42P01"
	undefinedColumn       = "42703"
	duplicateTable        = "42P07"
	duplicateObject       = "42710"
	uniqueViolation       = "23505"
	foreignKeyViolation   = "23503"
	serializationFailure  = "40001"
	deadlockDetected      = "40P01"
	diskFull              = "53100"
	tooManyConnections    = "53300"
	readOnly              = "25006"
	insufficientPrivilege = "42501"
)

// sqlState returns the server's code of an error; empty if the error is not the server's.
func sqlState(err error) string {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refused.Code
	}
	return ""
}

// mayRetry reports whether a transaction failed only because of another one.
func mayRetry(state string) bool {
	return state == serializationFailure || state == deadlockDetected
}

// Migration is a step of the schema.
type Migration struct {
	Version int
	Name    string
	Applied bool
}

// Migrations lists the steps that this program knows, and whether the database at an address has them.
func Migrations(ctx context.Context, dsn string) (all []Migration, err error) {
	err = connected(ctx, dsn, func(conn *pgx.Conn) error {
		version, err := schemaVersion(ctx, conn)
		if err == nil && version > len(migrations) {
			err = &SchemaError{Version: version, Known: len(migrations)}
		}
		for i, m := range migrations {
			all = append(all, Migration{i + 1, m.name, i < version})
		}
		return err
	})
	return all, err
}

// Migrate applies the steps that are missing in the database at an address.
func Migrate(ctx context.Context, dsn string) error {
	return connected(ctx, dsn, func(conn *pgx.Conn) error { return migrate(ctx, conn) })
}

// connected calls f with a new connection.
func connected(ctx context.Context, dsn string, f func(*pgx.Conn) error) error {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return &AddressError{err}
	}
	conn, err := connect(ctx, config)
	if err != nil {
		return &ConnectError{err}
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return f(conn)
}
