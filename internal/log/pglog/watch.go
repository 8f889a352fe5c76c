package pglog

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	eventlog "github.com/contextd/contextd/internal/log"
)

// channel is the channel on which processes notify each other of sessions that have moved.
const channel = "contextd"

// notifiedAtOnce bounds how many sessions one notification names: a server takes less than 8000 bytes.
const notifiedAtOnce = 256

// watch wakes calls that wait for sessions to move. Other processes notify it of their writes, but notifications are
// sent after the write and may be lost. So it also asks the database now and then, for all waiters at once.
type watch struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	changes chan struct{} // has one entry if pending is not empty
	apart   atomic.Bool   // whether the clocks were found to differ

	mu      sync.Mutex
	waiting map[eventlog.Incarnation]*signal
	pending map[eventlog.Incarnation]bool // of which to notify others
	down    error                         // why the database does not take writes
	doubt   func()                        // causes a probe of the database now
	full    int                           // the number of further probes for which the disk counts as full
	// listening is set while notifications come, if the server sends any.
	listening bool
}

// signal is shared by all calls that wait for one session.
type signal struct {
	moved   chan struct{} // closed when the session moves
	waiters int
	// seen is the least head that a waiter found; math.MaxInt64 if none has looked yet.
	seen int64
}

func (w *watch) init() {
	w.doubt, w.changes = func() {}, make(chan struct{}, 1)
	w.waiting, w.pending = map[eventlog.Incarnation]*signal{}, map[eventlog.Incarnation]bool{}
}

func (w *watch) start(s *Store, config *pgx.ConnConfig) {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.running.Go(func() { w.notify(ctx, s) })
	w.running.Go(func() { w.listen(ctx, s, config) })
	w.running.Go(func() { w.ask(ctx, s) })
}

func (w *watch) stop() {
	w.cancel()
	w.running.Wait()
}

// listen keeps a connection on which other processes' notifications come.
func (w *watch) listen(ctx context.Context, s *Store, config *pgx.ConnConfig) {
	for ctx.Err() == nil {
		err := w.listenOnce(ctx, s, config)
		if ctx.Err() != nil {
			return
		}
		w.mu.Lock()
		if w.down == nil {
			s.logger.Warn("the database's notifications have ended; trying again", "error", err)
		}
		w.down, w.listening = err, false
		w.mu.Unlock()
		pause(ctx, s.opts.Poll)
	}
}

func (w *watch) listenOnce(ctx context.Context, s *Store, config *pgx.ConnConfig) error {
	limited, cancel := s.reading(ctx)
	conn, err := connect(limited, config)
	cancel()
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if err := s.probe(ctx, conn); err != nil {
		return err
	}
	var backend uint32
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil && sqlState(err) == "" {
		return err
	}
	// Through a pooler, LISTEN would apply to a server's connection that others use next, and a notification there
	// can crash pgbouncer. So listen only on a direct connection; else waiters poll.
	if backend == conn.PgConn().PID() {
		if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil && sqlState(err) == "" {
			return err
		}
	}
	w.mu.Lock()
	w.down, w.listening = nil, true
	w.mu.Unlock()
	for {
		if err := w.hearFor(ctx, conn); err != nil {
			return err
		}
		// A connection that was cut silently would never report an error.
		if err := s.probe(ctx, conn); err != nil {
			return err
		}
		w.probed()
	}
}

// hearFor receives notifications until it is time for a probe.
func (w *watch) hearFor(ctx context.Context, conn *pgx.Conn) error {
	quiet, cancel := context.WithTimeout(ctx, probeEvery)
	defer cancel()
	w.mu.Lock()
	w.doubt = cancel
	w.mu.Unlock()
	for {
		n, err := conn.WaitForNotification(quiet)
		switch {
		case err == nil:
			w.hear(n.Payload)
		case quiet.Err() != nil && ctx.Err() == nil:
			return nil // a timeout or doubt, which the connection survives
		default:
			return err
		}
	}
}

// probeEvery is the time between two probes, and the time limit of a probe.
const probeEvery = 5 * time.Second

// probe returns why the database does not take writes, if it does not: it cannot be reached, is itself a standby, has no
// standby that confirms, or lacks the schema, as one that was replaced may.
func (s *Store) probe(ctx context.Context, conn *pgx.Conn) error {
	limited, cancel := context.WithTimeout(ctx, min(s.opts.Timeout, probeEvery))
	defer cancel()
	var setting string
	var waits bool
	var now int64
	err := conn.QueryRow(limited, `SELECT current_setting('transaction_read_only'), `+standbys+` <> '', EXTRACT(EPOCH FROM clock_timestamp())::bigint`).
		Scan(&setting, &waits, &now)
	if err == nil {
		s.compareClocks(time.Unix(now, 0))
	}
	if err == nil && setting == "on" {
		err = errReadOnly
	}
	if err == nil {
		var version int
		if version, err = schemaVersion(limited, conn); err == nil && version < len(migrations) {
			err = &SchemaError{Version: version, Known: len(migrations)}
		}
	}
	if err == nil && waits {
		err = conn.QueryRow(limited, `SELECT `+confirming).Scan(&waits)
		if cancelledWait(conn) {
			err = errUnconfirmed
		}
	}
	return err
}

var errReadOnly = errors.New("the server takes no writes: it is a standby, or set to read only")

// wrote records the result of a write, and causes a probe if the result does not show whether the database takes
// writes.
func (w *watch) wrote(err error) {
	_, failed := errors.AsType[*eventlog.UnavailableError](err)
	full := errors.As(err, new(*eventlog.FullError))
	w.mu.Lock()
	defer w.mu.Unlock()
	if failed {
		w.doubt()
	}
	switch {
	case full:
		w.full = fullProbes
	case err == nil:
		w.full = 0
	}
}

// fullProbes is for how many probes, in total a minute, the disk counts as full after a write that found no room.
// Without a limit it would count as full until the next write.
const fullProbes = 12

// probed records that the database takes writes.
func (w *watch) probed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.full = max(w.full-1, 0)
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	limited, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-limited.Done()
}

// notify notifies other processes of the sessions that moved here, many at once. A notification in each write would
// make all writers of the database queue for their commits.
func (w *watch) notify(ctx context.Context, s *Store) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changes:
		}
		w.mu.Lock()
		var payload []byte
		n := 0
		for of := range w.pending {
			if n++; n > notifiedAtOnce {
				w.changes <- struct{}{} // it is empty: moved fills it under the lock
				break
			}
			payload = append(strconv.AppendUint(payload, uint64(of), 10), ' ')
			delete(w.pending, of)
		}
		w.mu.Unlock()
		limited, cancel := s.reading(ctx)
		err := s.pool.Exec(limited, `SELECT pg_notify($1, $2)`, channel, string(payload))
		cancel()
		if err != nil && ctx.Err() == nil {
			s.logger.Debug("other processes were not notified of new events; they will ask", "error", err)
		}
	}
}

// ask wakes the waiters of sessions that have moved without a notification. If the database does not answer, it wakes
// all waiters, which then get the error themselves.
func (w *watch) ask(ctx context.Context, s *Store) {
	for pause(ctx, s.opts.Poll); ctx.Err() == nil; pause(ctx, s.opts.Poll) {
		w.mu.Lock()
		waited := make(map[int64]int64, len(w.waiting))
		for of, at := range w.waiting {
			waited[int64(of)] = at.seen
		}
		w.mu.Unlock()
		if len(waited) == 0 {
			continue
		}
		still, err := s.unmoved(ctx, waited)
		for of := range waited {
			if err != nil || !still[of] {
				w.wake(eventlog.Incarnation(of))
			}
		}
	}
}

// unmoved returns the sessions, by incarnation, that still have these heads.
func (s *Store) unmoved(ctx context.Context, heads map[int64]int64) (map[int64]bool, error) {
	limited, cancel := s.reading(ctx)
	defer cancel()
	rows, _ := s.pool.Query(limited, `SELECT incarnation, head FROM contextd_sessions WHERE incarnation = ANY($1)`,
		slices.Collect(maps.Keys(heads))) // the error is the rows' as well
	still := make(map[int64]bool, len(heads))
	var of, head int64
	_, err := pgx.ForEachRow(rows, []any{&of, &head}, func() error {
		still[of] = head == heads[of] || heads[of] == math.MaxInt64
		return nil
	})
	return still, err
}

// hear handles a notification.
func (w *watch) hear(payload string) {
	for name := range strings.FieldsSeq(payload) {
		if of, err := strconv.ParseUint(name, 10, 64); err == nil {
			w.wake(eventlog.Incarnation(of))
		}
	}
}

// moved reports that a session has a new head or was deleted.
func (w *watch) moved(of eventlog.Incarnation) {
	w.wake(of)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending[of] = true
	select {
	case w.changes <- struct{}{}:
	default:
	}
}

func (w *watch) wake(of eventlog.Incarnation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.waiting[of]; ok {
		close(at.moved)
		delete(w.waiting, of)
	}
}

// join returns the signal for a session's next move. The caller must give it back to leave.
func (w *watch) join(of eventlog.Incarnation) *signal {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.waiting[of]
	if !ok {
		at = &signal{moved: make(chan struct{}), seen: math.MaxInt64}
		w.waiting[of] = at
	}
	at.waiters++
	return at
}

func (w *watch) leave(of eventlog.Incarnation, at *signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at.waiters--; at.waiters == 0 && w.waiting[of] == at {
		delete(w.waiting, of)
	}
}

func (w *watch) saw(at *signal, head int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at.seen = min(at.seen, head)
}

func (w *watch) healthy() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down == nil {
		return nil
	}
	return &eventlog.UnavailableError{Cause: w.down, Passing: true}
}

// WaitPast waits until the head is not seq.
func (s *Store) WaitPast(ctx context.Context, id string, seq eventlog.Seq) (eventlog.Seq, error) {
	found, err := s.find(ctx, id)
	if err != nil {
		return 0, err
	}
	of := found.info.Incarnation
	for {
		head, err := s.waitOnce(ctx, id, of, seq)
		if err != nil || head != seq {
			return head, err
		}
	}
}

// waitOnce returns the head. If that is seq, it first waits for one move of the session.
func (s *Store) waitOnce(ctx context.Context, id string, of eventlog.Incarnation, seq eventlog.Seq) (eventlog.Seq, error) {
	next := s.watch.join(of) // before looking
	defer s.watch.leave(of, next)
	head, err := s.headOf(ctx, id, of)
	if err != nil || head != seq {
		return head, err
	}
	s.watch.saw(next, int64(head))
	select {
	case <-next.moved:
	case <-s.closing:
	case <-ctx.Done():
	}
	return head, ctx.Err()
}

// headOf returns the head of a session if it still has the incarnation.
func (s *Store) headOf(ctx context.Context, id string, of eventlog.Incarnation) (eventlog.Seq, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.leave()
	limited, cancel := s.reading(ctx)
	defer cancel()
	var head int64
	err := s.pool.QueryRow(limited, `SELECT head FROM contextd_sessions WHERE incarnation = $1`, int64(of)).Scan(&head)
	if err == pgx.ErrNoRows { //nolint:errorlint // It is returned as it is.
		return 0, eventlog.NoSession(id)
	}
	return eventlog.Seq(head), failure(ctx, err)
}
