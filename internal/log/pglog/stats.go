package pglog

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pool says how the connections to the database are used.
type Pool struct {
	// Used is how many connections statements have, Idle how many are open and not used, and Max the most of both
	// together.
	Used, Idle, Max int64
	// Waits is how often statements had to wait for a connection, and Waited how long in total.
	Waits  int64
	Waited time.Duration
}

// Pool returns how the connections are used now.
func (s *Store) Pool() Pool {
	now := s.pool.all.Stat()
	return Pool{
		Used: int64(now.AcquiredConns()), Idle: int64(now.IdleConns()), Max: int64(now.MaxConns()),
		Waits:  now.EmptyAcquireCount() + s.pool.waits.Load(),
		Waited: now.EmptyAcquireWaitTime() + time.Duration(s.pool.waited.Load()),
	}
}

// Table has what the database knows of a table without reading it.
type Table struct {
	Name string
	// Rows and Dead are estimates: of the rows, and of the rows that a vacuum would free.
	Rows, Dead int64
	// Bytes is the size of the table, Indexes the size of its indexes.
	Bytes, Indexes int64
}

// Tables returns the sizes of the store's tables, partitions included. It reads none of their rows.
func (s *Store) Tables(ctx context.Context) ([]Table, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	limited, cancel := s.reading(ctx)
	defer cancel()
	const sql = `SELECT 'contextd_' || t.name, SUM(GREATEST(c.reltuples, 0))::bigint, COALESCE(SUM(u.n_dead_tup), 0)::bigint,
			SUM(pg_table_size(c.oid))::bigint, SUM(pg_indexes_size(c.oid))::bigint
		FROM unnest(ARRAY['sessions', 'shares', 'events', 'artifacts']) AS t (name)
		JOIN pg_class c ON c.relkind = 'r' AND (c.oid = to_regclass('contextd_' || t.name)
			OR c.oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass('contextd_' || t.name)))
		LEFT JOIN pg_stat_user_tables u ON u.relid = c.oid GROUP BY t.name ORDER BY t.name`
	rows, _ := s.pool.Query(limited, sql) // the error is the rows' as well
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Table])
	return all, failure(ctx, err)
}
