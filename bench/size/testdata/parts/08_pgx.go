// The client of PostgreSQL (pgx).
package main

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

func init() {
	ctx := context.Background()
	pool, _ := pgxpool.New(ctx, "")
	pool.Exec(ctx, "")
	pool.Query(ctx, "")
	tx, _ := pool.Begin(ctx)
	tx.Commit(ctx)
}
