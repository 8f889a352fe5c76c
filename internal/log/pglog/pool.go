package pglog

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/semaphore"
)

// pool is the connections that statements use. A server may have fewer connections for this process than Options allow:
// its other clients have them. A statement that is refused one waits like a statement that finds all of the pool's taken.
type pool struct {
	all *pgxpool.Pool
	// room has a place for each connection. A statement holds one while it has, or waits for, a connection.
	room *semaphore.Weighted
	// waits and waited are of statements that waited for a place.
	waits, waited atomic.Int64
}

// askAgain is how long a place is taken out of the room after the server refused a connection for it: until then
// statements use the connections that there are, and after it one of them asks the server again.
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

// enter takes a place in the room.
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

// Query is that of pgxpool.Pool. The rows must be closed.
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

// QueryRow is that of pgxpool.Pool. The row must be scanned.
func (p *pool) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	conn, release, err := p.acquire(ctx)
	if err != nil {
		return failed{err: err}
	}
	return row{conn.QueryRow(ctx, sql, args...), release}
}

// Exec runs a statement whose result is not of interest.
func (p *pool) Exec(ctx context.Context, sql string, args ...any) error {
	conn, release, err := p.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	_, err = conn.Exec(ctx, sql, args...)
	return err
}

// rows and row give their connection back once they are read.
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

// failed is the rows, or the row, of a statement that had no connection.
type failed struct {
	pgx.Rows
	err error
}

func (failed) Close()              {}
func (f failed) Err() error        { return f.err }
func (failed) Next() bool          { return false }
func (f failed) Scan(...any) error { return f.err }
