package pglog

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Options configure a store. The zero value is valid.
type Options struct {
	Logger *slog.Logger
	// MaxConnections is the most connections of the pool; 0 is the address's value or, if it has none, the pool's own
	// default. One more connection listens.
	MaxConnections int32
	// Timeout is the time limit of each statement; 0 is 30 seconds.
	Timeout time.Duration
	// Migrate updates the schema on opening. Without it, the schema must be up to date.
	Migrate bool
	// Attempts is how often a write is tried if other writers come first; 0 is 16.
	Attempts int
	// Poll is how often to read the heads for which calls wait, even if notifications come; 0 is half a second.
	Poll time.Duration
	// Copying, if set, names the store that is copied into this one. If this store is empty now, Open refuses it with
	// another name or none until Copied was called.
	Copying string
	// Clock, if set, is compared with the database's.
	Clock func() time.Time
	// Tracer, if set, traces the statements of calls.
	Tracer pgx.QueryTracer
}

// Store is an eventlog.Store in PostgreSQL.
type Store struct {
	opts   Options
	pool   *pool
	logger *slog.Logger
	// holder identifies this process in leases.
	holder int64

	// open is locked for reading by every call while it uses the database.
	open    sync.RWMutex
	closed  bool          // guarded by open
	closing chan struct{} // closed when Close begins

	watch  watch
	memory memory
	groups groups
}

var _ eventlog.Store = (*Store)(nil)

// Open connects to a database by its address, in any form that libpq takes. Errors do not show the
// address's password.
func Open(ctx context.Context, dsn string, opts Options) (*Store, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Timeout == 0 {
		opts.Timeout = 30 * time.Second
	}
	if opts.Attempts == 0 {
		opts.Attempts = 16
	}
	if opts.Poll == 0 {
		opts.Poll = 500 * time.Millisecond
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, &AddressError{err}
	}
	if opts.MaxConnections > 0 {
		config.MaxConns = opts.MaxConnections
	}
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		registerTypes(conn)
		return nil
	}
	config.ConnConfig.OnNotice = noteCancelledWait
	listening := config.ConnConfig.Copy()
	config.ConnConfig.Tracer = opts.Tracer
	s := &Store{opts: opts, logger: opts.Logger, closing: make(chan struct{})}
	if err := s.prepare(ctx, config.ConnConfig); err != nil {
		return nil, err
	}
	s.watch.init()
	if s.pool, err = newPool(context.WithoutCancel(ctx), config); err != nil {
		return nil, &ConnectError{err}
	}
	s.watch.start(s, listening)
	return s, nil
}

// connect opens a connection outside the pool.
func connect(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err == nil {
		registerTypes(conn)
	}
	return conn, err
}

// registerTypes registers the PostgreSQL types of the arguments of this package's statements. Only the address's
// modes exec and simple_protocol need them. pgx itself registers all types that it has, unless it is built with
// nopgxregisterdefaulttypes, which saves 1.4 MiB in the program.
func registerTypes(conn *pgx.Conn) {
	types := conn.TypeMap()
	for _, value := range []any{0, int64(0)} {
		types.RegisterDefaultPgType(value, "int8")
	}
	for name, value := range map[string]any{
		"text": "", "bytea": []byte(nil), "interval": time.Duration(0),
		"_bool": []bool(nil), "_int8": []int64(nil), "_text": []string(nil), "_bytea": [][]byte(nil),
	} {
		types.RegisterDefaultPgType(value, name)
	}
}

// AddressError says that an address of a database does not parse.
type AddressError struct{ Cause error }

func (e *AddressError) Error() string { return "the database's address: " + sentence(e.Cause) }

// Unwrap returns the cause.
func (e *AddressError) Unwrap() error { return e.Cause }

// ConnectError says that a database cannot be reached, or refuses the login.
type ConnectError struct{ Cause error }

func (e *ConnectError) Error() string { return "connect to the database: " + sentence(e.Cause) }

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Cause }

// sentence puts an error on one line: a connection error has a line for each host.
func sentence(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// prepare checks the schema, or migrates it. It has no time limit for that, because it may wait for another process
// that migrates.
func (s *Store) prepare(ctx context.Context, config *pgx.ConnConfig) error {
	limited, cancel := s.reading(ctx)
	defer cancel()
	conn, err := connect(limited, config)
	if err != nil {
		return &ConnectError{err}
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if s.opts.Migrate {
		if err := migrate(ctx, conn); err != nil {
			return err
		}
	}
	limited, cancel = s.reading(ctx)
	defer cancel()
	if err := checkSchema(limited, conn); err != nil {
		return err
	}
	if err := s.mark(limited, conn); err != nil {
		return err
	}
	if err := conn.QueryRow(limited, `SELECT `+nextIncarnation).Scan(&s.holder); err != nil {
		return err
	}
	return s.warnOfLoss(limited, conn)
}

// warnOfLoss logs a warning if the server acknowledges commits before they are on a disk.
func (s *Store) warnOfLoss(ctx context.Context, conn *pgx.Conn) error {
	for _, setting := range []string{"fsync", "synchronous_commit"} {
		var value *string
		if err := conn.QueryRow(ctx, `SELECT current_setting($1, true)`, setting).Scan(&value); err != nil {
			return err
		}
		if value != nil && *value == "off" {
			s.logger.Warn("the database does not wait for its disk: where its server crashes, what was acknowledged may be lost", "setting", setting+"=off")
		}
	}
	return nil
}

// Capabilities says that there is a hash chain. There is no Erases, because deleted rows stay in the database's files
// until a vacuum.
func (s *Store) Capabilities() eventlog.Capabilities { return eventlog.Capabilities{Chain: true} }

// enter begins a call that uses the database; leave ends it.
func (s *Store) enter(ctx context.Context) error {
	s.open.RLock()
	err := ctx.Err()
	if s.closed {
		err = eventlog.ErrClosed
	}
	if err != nil {
		s.open.RUnlock()
	}
	return err
}

func (s *Store) leave() { s.open.RUnlock() }

// reading returns a context with the time limit of a statement that changes nothing.
func (s *Store) reading(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.opts.Timeout)
}

// writing returns a context with the time limit of a statement that must not stop half-way if the caller's context
// ends.
func (s *Store) writing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.opts.Timeout)
}

// failure converts an error of the database to one of eventlog. ctx is the caller's.
func failure(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case sqlState(err) == diskFull:
		return &eventlog.FullError{}
	}
	if _, ok := errors.AsType[*eventlog.CorruptError](err); ok {
		return err
	}
	return &eventlog.UnavailableError{Cause: err, Passing: true}
}

// errLost says that another writer came first.
var errLost = errors.New("another writer came first")

// retried tries a write until no other writer comes first, at most Options.Attempts times. what names the write in
// the *eventlog.ConflictError.
func (s *Store) retried(ctx context.Context, id, what string, write func() error) error {
	for range s.opts.Attempts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := write(); !errors.Is(err, errLost) && !mayRetry(sqlState(err)) {
			return err
		}
	}
	return &eventlog.ConflictError{Session: id, What: what}
}

// Healthy returns nil while the store is open and the database takes writes.
func (s *Store) Healthy() error {
	s.open.RLock()
	defer s.open.RUnlock()
	if s.closed {
		return eventlog.ErrClosed
	}
	return s.watch.healthy()
}

// Full reports whether a write in the last minute found no room on the disk, and no write since succeeded.
func (s *Store) Full() bool {
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	return s.watch.full > 0
}

// Close waits for the running calls and disconnects.
func (s *Store) Close() error {
	s.open.Lock()
	if s.closed {
		s.open.Unlock()
		return eventlog.ErrClosed
	}
	s.closed = true
	close(s.closing)
	s.open.Unlock()
	s.watch.stop()
	s.pool.all.Close()
	return nil
}
