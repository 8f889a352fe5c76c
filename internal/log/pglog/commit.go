package pglog

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A server whose commits wait for a synchronous standby may show others a commit that the standby does not have: if
// the wait was cancelled, or if the server was restarted. So
//
//   - a commit whose wait was cancelled is not acknowledged, although the server reports a success;
//   - a commit that a call finds, and acknowledges because of that, is confirmed first, by a commit of its own that
//     finds it on the same server and is after it in the server's log.

// uncertainError says that a write may have happened, because the server's answer was lost.
type uncertainError struct{ error }

func (e uncertainError) Unwrap() error { return e.error }

// errUnconfirmed says that a commit is visible but may not be on the standby.
var errUnconfirmed = errors.New("the wait for the synchronous standby was cancelled")

// unconfirmed is set in a connection's CustomData when the wait of a commit was cancelled.
const unconfirmed = "contextd.unconfirmed"

// noteCancelledWait recognises the server's warning that a wait was cancelled, by the function that gives it, because
// the text is in the server's language. The server reports the command itself as a success.
func noteCancelledWait(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine == "SyncRepWaitForLSN" {
		c.CustomData()[unconfirmed] = true
	}
}

// cancelledWait reports whether a wait was cancelled on the connection since the last call.
func cancelledWait(c *pgx.Conn) bool {
	marks := c.PgConn().CustomData()
	defer delete(marks, unconfirmed)
	return marks[unconfirmed] != nil
}

// commit runs write, which sends its statements on one connection. They do not stop half-way if ctx ends. The error
// is nil, errLost if another writer came first and nothing was stored, an uncertainError, or another failure.
func (s *Store) commit(ctx context.Context, write func(context.Context, *pgxpool.Conn) error) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Timeout)
	defer cancel()
	conn, release, err := s.pool.acquire(limited)
	if err != nil {
		return failure(ctx, err) // nothing was sent
	}
	defer release()
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

// wrote classifies the error of a write's statement.
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

// endedBetween reports whether a server, or a pooler before it, may send this error although the commit was made:
// those of failed connections (class 08) and of terminated statements and servers (57).
func endedBetween(state string) bool {
	return strings.HasPrefix(state, "08") || strings.HasPrefix(state, "57")
}

const (
	// standbys yields the synchronous standbys for which the server waits; empty if there are none.
	standbys = `COALESCE(current_setting('synchronous_standby_names', true), '')`
	// confirming yields true, and makes the statement's commit wait for the standbys.
	confirming = `(SELECT pg_logical_emit_message(true, 'contextd', '') IS NOT NULL)`
)

// confirm makes sure that a session's existence, or its absence if there is false, is as durable as a commit. It
// returns errLost if that has changed.
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
