package rpc_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/contextd/contextd/internal/log/pglog"
	"github.com/contextd/contextd/internal/log/pglog/pgtest"
)

// poolSize is how many database connections each way has: the daemon's default.
const poolSize = 16

// BenchmarkPostgres is BenchmarkAppend on PostgreSQL. It compares bare inserts of an event's row with the
// daemon.
func BenchmarkPostgres(b *testing.B) {
	server, err := pgtest.Start("fsync=on", "shared_buffers=128MB", "autovacuum=on", "max_wal_size=4GB")
	if err != nil {
		b.Fatal(err)
	}
	if server == nil {
		b.Skip("SKIPPED: no PostgreSQL is installed (Debian's package postgresql)")
	}
	b.Cleanup(server.Stop)
	schema := func() string {
		dsn := server.Schema(b)
		if err := pglog.Migrate(b.Context(), dsn); err != nil {
			b.Fatal(err)
		}
		return dsn
	}
	const size, writers = 1 << 10, 64
	s := newTexts(b, size)
	d := start(b, "--store=postgres", "CONTEXTD_POSTGRES_DSN="+schema())
	defer d.stop()
	compare(b, d, []*way{
		{name: "pgx", append: s.bareInserts(b, schema())},
		{name: "unary", append: s.unary(d)},
	}, writers, roundEvents(size, writers))
}

// bareInserts is the lowest possible cost of a durable append in the database: the same row in the same table
// with its two indexes, without updating a session.
func (t texts) bareInserts(b *testing.B, dsn string) appendAll {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = poolSize
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	const sql = `INSERT INTO contextd_events (segment, seq, id_hash, digest, record, head, chain, log_bytes) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	return func(writer int, next func() (int, bool), took func(time.Duration)) error {
		head := make([]byte, 24)
		for {
			n, ok := next()
			if !ok {
				return nil
			}
			began := time.Now()
			hash := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n)))
			if _, err := pool.Exec(context.Background(), sql, writer, n, hash[:], hash[:], []byte(t[n%len(t)]), head, hash[:], n); err != nil {
				return err
			}
			took(time.Since(began))
		}
	}
}
