package pglog

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/semaphore"
)

// pool has the connections that statements use. The server may have fewer connections for this process than Options
// permit, because other clients use them. A statement whose connection is refused waits, like one that finds all
// connections in use.
type pool struct {
	all *pgxpool.Pool
	// room has a place for each connection. A statement has a place while it has, or waits for, a connection.
	room *semaphore.Weighted
	// waits and waited are the number and the total time of waits for a place.
	waits, waited atomic.Int64
}

// askAgain is how long a place is not used after the server refused a connection for it. Until then statements use
// the existing connections; after that one of them asks the server again.
const askAgain = time.Second

func newPool(ctx context.Context, config *pgxpool.Config) (*pool, error) {
	all, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &pool{all: all, room: semaphore.NewWeighted(int64(config.MaxConns))}, nil
}

// acquire waits for a connection until ctx ends; release gives it back.
func (p *pool) acquire(ctx context.Context) (conn *pgxpool.Conn, release func(), err error) {
	for {
		if full := p.enter(ctx); full != nil {
			if err == nil {
				err = full
			}
			return nil, nil, err // of the server, if it refused one
		}
		conn, err = p.all.Acquire(ctx)
		switch {
		case err == nil:
			return conn, func() { conn.Release(); p.room.Release(1) }, nil
		case sqlState(err) != tooManyConnections:
			p.room.Release(1)
			return nil, nil, err
		}
		time.AfterFunc(askAgain, func() { p.room.Release(1) }) //nolint:forbidigo // Only when a statement runs depends on it.
	}
}

// enter waits for a place in the room.
func (p *pool) enter(ctx context.Context) error {
	if p.room.TryAcquire(1) {
		return nil
	}
	began := time.Now() //nolint:forbidigo // for a metric; no data depends on it
	err := p.room.Acquire(ctx, 1)
	p.waits.Add(1)
	p.waited.Add(int64(time.Since(began))) //nolint:forbidigo // the same
	return err
}

// Query does the same as pgxpool.Pool's Query. The caller must close the rows.
func (p *pool) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	conn, release, err := p.acquire(ctx)
	if err != nil {
		return failed{err: err}, err
	}
	found, err := conn.Query(ctx, sql, args...)
	if err != nil {
		release()
		return failed{err: err}, err
	}
	return &rows{found, release}, nil
}

// QueryRow does the same as pgxpool.Pool's QueryRow. The caller must scan the row.
func (p *pool) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	conn, release, err := p.acquire(ctx)
	if err != nil {
		return failed{err: err}
	}
	return row{conn.QueryRow(ctx, sql, args...), release}
}

// Exec runs a statement without a result.
func (p *pool) Exec(ctx context.Context, sql string, args ...any) error {
	conn, release, err := p.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	_, err = conn.Exec(ctx, sql, args...)
	return err
}

// rows and row give their connection back when they have been read.
type (
	rows struct {
		pgx.Rows
		release func() // nil once it was called
	}
	row struct {
		pgx.Row
		release func()
	}
)

func (r *rows) Close() {
	r.Rows.Close()
	if r.release != nil {
		r.release()
		r.release = nil
	}
}

func (r row) Scan(into ...any) error {
	defer r.release()
	return r.Row.Scan(into...)
}

// failed is the rows, or the row, of a statement that got no connection.
type failed struct {
	pgx.Rows
	err error
}

func (failed) Close()              {}
func (f failed) Err() error        { return f.err }
func (failed) Next() bool          { return false }
func (f failed) Scan(...any) error { return f.err }
