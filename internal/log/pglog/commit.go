package pglog

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A server whose commits wait for a synchronous standby shows others what it has committed although
// the standby may not have it, where the wait was cancelled or the server was started again. So
//
//   - a commit whose wait was cancelled is not acknowledged, although the server calls it done;
//   - what a call finds, and acknowledges because it finds it, is confirmed first: by a commit of its
//     own, whose place in the server's log is after it, and which finds it on the same server.

// uncertainError says that a write may have happened: the server's answer is lost.
type uncertainError struct{ error }

func (e uncertainError) Unwrap() error { return e.error }

// errUnconfirmed says that a commit is visible, and may not be on the standby.
var errUnconfirmed = errors.New("the wait for the synchronous standby was cancelled")

// unconfirmed is set in a connection's CustomData when the wait of a commit was cancelled.
const unconfirmed = "contextd.unconfirmed"

// noteCancelledWait takes the server's word for that: a warning which is known by the function that gives
// it, because its text is in the server's language. The command ends as if it had done all.
func noteCancelledWait(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine == "SyncRepWaitForLSN" {
		c.CustomData()[unconfirmed] = true
	}
}

// cancelledWait reports whether the wait was cancelled since it was asked last.
func cancelledWait(c *pgx.Conn) bool {
	marks := c.PgConn().CustomData()
	defer delete(marks, unconfirmed)
	return marks[unconfirmed] != nil
}

// commit makes a write, or confirms, by statements on one connection that do not end half-way because the caller
// has gone. Its errors are nil, errLost if nothing was stored because of another writer, an
// uncertainError, or another failure.
func (s *Store) commit(ctx context.Context, write func(context.Context, *pgxpool.Conn) error) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Timeout)
	defer cancel()
	conn, err := s.pool.Acquire(limited)
	if err != nil {
		return failure(ctx, err) // nothing was sent
	}
	defer conn.Release()
	err = write(limited, conn)
	if cancelledWait(conn.Conn()) {
		err = errUnconfirmed
	}
	if sqlState(err) == readOnly {
		_ = conn.Conn().Close(limited) // another connection may lead to another server
	}
	err = wrote(err)
	s.watch.wrote(err)
	return err
}

// wrote sorts out how a write's statement ended.
func wrote(err error) error {
	state := sqlState(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrNoRows), mayRetry(state), state == uniqueViolation:
		return errLost
	case state != "" && !endedBetween(state):
		return failure(context.Background(), err)
	}
	return uncertainError{failure(context.Background(), err)}
}

// endedBetween reports whether a server, or a pooler before it, may send the error after the commit:
// connections that fail (class 08) and statements and servers that are ended (57).
func endedBetween(state string) bool {
	return strings.HasPrefix(state, "08") || strings.HasPrefix(state, "57")
}

const (
	// standbys yields which synchronous standbys the server waits for, empty if none.
	standbys = `COALESCE(current_setting('synchronous_standby_names', true), '')`
	// confirming yields true, and has the statement's commit wait for the standbys.
	confirming = `(SELECT pg_logical_emit_message(true, 'contextd', '') IS NOT NULL)`
)

// confirm returns nil where there is, or is not, a session of that id, and its presence or absence
// is as durable as a commit is. It returns errLost if that has changed.
func (s *Store) confirm(ctx context.Context, id string, there bool) error {
	return s.commit(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		const present = `SELECT EXISTS (SELECT 1 FROM contextd_sessions WHERE id = $1), `
		var is, waits bool
		err := conn.QueryRow(ctx, present+standbys+` <> ''`, []byte(id)).Scan(&is, &waits)
		if err == nil && waits {
			err = conn.QueryRow(ctx, present+confirming, []byte(id)).Scan(&is, &waits)
		}
		if err == nil && is != there {
			err = pgx.ErrNoRows
		}
		return err
	})
}
