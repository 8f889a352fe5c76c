package pglog

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Fork makes a session that shares its parent's segments.
func (s *Store) Fork(ctx context.Context, r eventlog.ForkRequest) (made eventlog.Session, err error) {
	if err := s.enter(ctx); err != nil {
		return eventlog.Session{}, err
	}
	defer s.leave()
	err = s.retried(ctx, r.ParentID, "its fork", func() error {
		made, err = s.forkOnce(ctx, r)
		return err
	})
	return made, err
}

func (s *Store) forkOnce(ctx context.Context, r eventlog.ForkRequest) (eventlog.Session, error) {
	parent, err := s.load(ctx, r.ParentID)
	if err != nil {
		return eventlog.Session{}, err
	}
	if err := r.Validate(parent.info.Head); err != nil {
		return eventlog.Session{}, err
	}
	at, err := s.stateAt(ctx, parent, r.At)
	if err != nil {
		return eventlog.Session{}, err
	}
	shared := parent.share(r.At)
	from := eventlog.Session{
		ID: r.NewID, ParentID: r.ParentID, ForkSeq: r.At, CreateTime: r.Time.UTC().Round(0),
		Labels: parent.info.Labels, Settings: parent.info.Settings,
	}
	if len(shared) > 0 {
		from.ArtifactBytes = parent.info.ArtifactBytes
	}
	if r.Labels != nil {
		from.Labels = r.Labels
	}
	return s.make(ctx, from, at, parent, shared)
}

// share returns the links of a fork at seq.
func (s *session) share(at eventlog.Seq) (shared []link) {
	if at == 0 {
		return nil
	}
	for _, l := range s.links() {
		if l.upTo = min(l.upTo, int64(at)); l.segment == s.incarnation() {
			l.puts = s.puts
		}
		if l.upTo > l.base || l.puts > 0 {
			shared = append(shared, l)
		}
	}
	return shared
}

// DeleteSession removes a session and every row that no fork shows. Unlike other writes it locks rows while it works.
// It locks the sessions that write the segments of this session, so that none of them puts an artifact meanwhile. And
// it locks a share, so that of two deletions the later one sees the result of the earlier one.
func (s *Store) DeleteSession(ctx context.Context, id string, of eventlog.Incarnation, head *eventlog.Seq) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.retried(ctx, id, "its deletion", func() error {
		found, err := s.load(ctx, id)
		if eventlog.IsMissing(err) {
			if err := s.confirm(ctx, id, false); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		if of != 0 && of != found.info.Incarnation {
			return eventlog.NoSession(id)
		}
		var mismatch *eventlog.HeadMismatchError
		err = s.commit(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
			err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
				return remove(ctx, tx, found, head)
			})
			if errors.As(err, &mismatch) {
				return nil // an earlier attempt, whose answer was lost, deleted it
			}
			return err
		})
		if err == nil && mismatch != nil {
			// Another writer's head is not reported before it is durable.
			err = cmp.Or(s.confirm(ctx, id, true), error(mismatch))
		}
		if err != nil {
			return err
		}
		s.memory.forget(id)
		s.watch.moved(found.info.Incarnation)
		return nil
	})
}

// remove removes a session. It returns pgx.ErrNoRows if the session does not exist any more.
func remove(ctx context.Context, tx pgx.Tx, found *session, head *eventlog.Seq) error {
	own, links := found.incarnation(), found.links()
	segments := make([]int64, len(links))
	for i, l := range links {
		segments[i] = l.segment
	}
	if _, err := tx.Exec(ctx, `SELECT 1 FROM contextd_sessions WHERE incarnation = ANY($1) ORDER BY incarnation FOR UPDATE`, segments); err != nil {
		return err
	}
	if err := headIs(ctx, tx, own, head); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `DELETE FROM contextd_sessions WHERE incarnation = $1`, own)
	if err == nil && tag.RowsAffected() == 0 {
		err = pgx.ErrNoRows
	}
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	// All sessions that show one of the segments show the first one, so the holder of its first share is alone.
	b.Queue(`SELECT 1 FROM contextd_shares WHERE segment = $1 ORDER BY incarnation LIMIT 1 FOR UPDATE`, segments[0])
	b.Queue(`DELETE FROM contextd_shares WHERE incarnation = $1`, own)
	b.Queue(`UPDATE contextd_sessions SET version = `+nextVersion+` WHERE incarnation = ANY($1)`, segments)
	for _, l := range links {
		b.Queue(`DELETE FROM contextd_events WHERE segment = $1
			AND seq > (SELECT COALESCE(MAX(up_to), 0) FROM contextd_shares WHERE segment = $1)`, l.segment)
		if l.puts == 0 {
			continue // it showed none
		}
		// A session shows an artifact if it shows the artifact's put and not the put of the next version.
		b.Queue(`DELETE FROM contextd_artifacts a WHERE segment = $1 AND NOT EXISTS (
			SELECT 1 FROM contextd_shares h WHERE h.segment = $1 AND h.up_to >= a.seq AND h.puts >= a.put
			AND h.puts <= COALESCE((SELECT n.put - 1 FROM contextd_artifacts n WHERE n.segment = $1 AND n.kind = a.kind
				AND n.seq = a.seq AND n.id = a.id AND n.put > a.put ORDER BY n.put LIMIT 1), h.puts) OFFSET 0)`, l.segment)
	}
	return tx.SendBatch(ctx, b).Close()
}

// headIs returns *eventlog.HeadMismatchError if a locked session has another head than want, and pgx.ErrNoRows if the
// session does not exist any more.
func headIs(ctx context.Context, tx pgx.Tx, incarnation int64, want *eventlog.Seq) error {
	if want == nil {
		return nil
	}
	var head int64
	if err := tx.QueryRow(ctx, `SELECT head FROM contextd_sessions WHERE incarnation = $1`, incarnation).Scan(&head); err != nil {
		return err
	}
	if now := eventlog.Seq(head); now != *want {
		return &eventlog.HeadMismatchError{Expected: *want, Actual: now}
	}
	return nil
}

// WaitErased returns at once: the database removes the bytes of deleted rows when it vacuums.
func (s *Store) WaitErased(ctx context.Context, _ eventlog.Incarnation) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.leave()
	return nil
}
