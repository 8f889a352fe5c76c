// Command fleet fills a PostgreSQL database with the sessions of a fleet of agents, and measures a daemon on
// it.
//
//	go run ./bench/fleet -sessions 1000000
//
// It starts a server of its own in a temporary directory, which it removes, and needs about 5 KB of disk for
// each session of four events. With -dsn it uses an existing database instead, in which it creates a schema
// and removes it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/contextd/contextd/internal/log/pglog/pgtest"
)

func main() {
	sessions := flag.Int("sessions", 1_000_000, "how many there are before anything is measured")
	dsn := flag.String("dsn", "", "address of a database; without one a server is started")
	samples := flag.Int("samples", 300, "how often each operation is measured")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *dsn, *sessions, *samples)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dsn string, sessions, samples int) error {
	if dsn == "" {
		server, err := pgtest.Start("fsync=on", "shared_buffers=512MB", "max_wal_size=2GB", "autovacuum=on")
		if err != nil {
			return err
		}
		if server == nil {
			return fmt.Errorf("no PostgreSQL is installed (Debian's package postgresql)")
		}
		defer server.Stop()
		dsn = server.DSN("")
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	const schema = "contextd_fleet"
	if _, err := conn.Exec(ctx, "CREATE SCHEMA "+schema+"; SET search_path = "+schema); err != nil {
		return err
	}
	defer func() { _, _ = conn.Exec(context.WithoutCancel(ctx), "DROP SCHEMA "+schema+" CASCADE") }()
	d, err := newDaemon(ctx, within(dsn, schema))
	if err != nil {
		return err
	}
	defer d.remove()
	if err := d.start(ctx); err != nil {
		return err
	}
	if err := d.session(ctx, template); err != nil {
		return err
	}
	if err := d.stop(); err != nil {
		return err
	}
	began := time.Now()
	if err := fill(ctx, conn, sessions); err != nil {
		return err
	}
	fmt.Printf("%d sessions made in %s\n\n", sessions, time.Since(began).Round(time.Second))
	if err := sizes(ctx, conn); err != nil {
		return err
	}
	return measure(ctx, d, conn, sessions, samples)
}

// within is a database's address with a schema as its search path.
func within(dsn, schema string) string {
	if !strings.Contains(dsn, "://") {
		return dsn + " search_path=" + schema
	}
	if strings.Contains(dsn, "?") {
		return dsn + "&search_path=" + schema
	}
	return dsn + "?search_path=" + schema
}
