package pglog

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// unbounded is a session's bound in the segment that it writes: the largest number that the database has.
const unbounded = math.MaxInt64

// link is a session's share in a segment: the events up to upTo, and those artifacts up to upTo that are among the
// segment's first puts puts.
type link struct{ segment, base, upTo, puts int64 }

// session is a session as it was at its version.
type session struct {
	info    eventlog.Session // as callers get it
	version int64
	shared  []link // of the sessions that it was forked from, oldest first
	at      state
	puts    int64
}

// incarnation returns the session's incarnation, which is also the number of its own segment.
func (s *session) incarnation() int64 { return int64(s.info.Incarnation) }

// links returns the links that cover the whole log, oldest first.
func (s *session) links() []link {
	return append(slices.Clone(s.shared), link{segment: s.incarnation(), base: int64(s.info.ForkSeq), upTo: unbounded, puts: unbounded})
}

// linkOf returns the link that has an event of the session.
func (s *session) linkOf(seq eventlog.Seq) link {
	all := s.links()
	return all[slices.IndexFunc(all, func(l link) bool { return int64(seq) <= l.upTo })]
}

// state is all that a writer must know of the log up to an event.
type state struct {
	head   eventlog.Head
	bytes  uint64
	update time.Time
	chain  [sha256.Size]byte
}

// sessionColumns are the columns of a session, in the order of the fields of columns.
const sessionColumns = `s.id, s.incarnation, s.version, s.info, s.head, s.state, s.puts, s.artifact_bytes`

// columns has the values of a row for sessionColumns.
type columns struct {
	id, info, state                                []byte
	incarnation, version, head, puts, artifactSize int64
}

func (c *columns) targets() []any {
	return []any{&c.id, &c.incarnation, &c.version, &c.info, &c.head, &c.state, &c.puts, &c.artifactSize}
}

func (c *columns) session() (*session, error) {
	corrupt := func(err error) error {
		return &eventlog.CorruptError{Session: string(c.id), What: fmt.Sprintf("session %q", c.id), Reason: err.Error()}
	}
	var info storagev1.Session
	if err := proto.Unmarshal(c.info, &info); err != nil {
		return nil, corrupt(err)
	}
	var head storagev1.Head
	if err := proto.Unmarshal(c.state, &head); err != nil {
		return nil, corrupt(err)
	}
	s := &session{version: c.version, puts: c.puts}
	s.at.apply(eventlog.Seq(c.head), &head, head.GetChain())
	for _, l := range info.GetLinks() {
		s.shared = append(s.shared, link{int64(l.GetSegment()), int64(l.GetBase()), int64(l.GetUpTo()), int64(l.GetPuts())})
	}
	s.info = eventlog.Session{
		ID: string(c.id), Incarnation: eventlog.Incarnation(c.incarnation),
		CreateTime: time.Unix(info.GetCreateSeconds(), int64(info.GetCreateNanos())).UTC(),
		Labels:     info.GetLabels(), Settings: info.GetSettings(),
		ParentID: info.GetParentId(), ForkSeq: eventlog.Seq(info.GetForkSeq()),
		Head: s.at.head.Seq, Turns: s.at.head.Turns, LogBytes: s.at.bytes, UpdateTime: s.at.update,
		ArtifactBytes: uint64(c.artifactSize), ChainHead: s.at.chainHead(),
	}
	return s, nil
}

func (s *state) chainHead() []byte {
	if s.head.Seq == 0 {
		return nil
	}
	return slices.Clone(s.chain[:])
}

// encodeInfo encodes the fields of a session that never change.
func encodeInfo(from eventlog.Session, shared []link) ([]byte, error) {
	m := &storagev1.Session{
		CreateSeconds: from.CreateTime.Unix(), CreateNanos: int32(from.CreateTime.Nanosecond()),
		Labels: from.Labels, Settings: from.Settings, ParentId: from.ParentID, ForkSeq: uint64(from.ForkSeq),
	}
	for _, l := range shared {
		m.Links = append(m.Links, &storagev1.Link{
			Segment: uint64(l.segment), Base: uint64(l.base), UpTo: proto.Uint64(uint64(l.upTo)), Puts: proto.Uint64(uint64(l.puts)),
		})
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// load reads a session, or returns *eventlog.NotFoundError. Within a call (eventlog.OneCall) this is the call's check
// of the session, and also fetches the events after those that were read last.
func (s *Store) load(ctx context.Context, id string) (*session, error) {
	limited, cancel := s.reading(ctx)
	defer cancel()
	call, since, bytes, l := eventlog.CallOf(ctx), int64(noNews), int64(0), &look{}
	if k := s.memory.get(id); k != nil && call != nil {
		since, bytes, l.before = k.read, k.readBytes, k.looked
	}
	var c columns
	var e struct {
		seq                 *int64
		record, head, chain []byte
	}
	const sql = `SELECT ` + sessionColumns + `, (SELECT b.chain FROM contextd_events b WHERE b.segment = s.incarnation AND b.seq = $5),
		e.seq, e.record, e.head, e.chain FROM contextd_sessions s
		LEFT JOIN contextd_events e ON e.segment = s.incarnation AND e.seq > $2 AND e.log_bytes <= $4 WHERE s.id = $1 ORDER BY e.seq LIMIT $3`
	rows, _ := s.pool.Query(limited, sql, []byte(id), since, newsLength, bytes+pageBytes, l.before) // the error is the rows' as well
	tag, err := pgx.ForEachRow(rows, append(c.targets(), &l.chain, &e.seq, &e.record, &e.head, &e.chain), func() error {
		if e.seq != nil {
			l.news = append(l.news, storedEvent{*e.seq, e.record, e.head, e.chain})
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, failure(ctx, err)
	case tag.RowsAffected() == 0:
		s.memory.forget(id)
		return nil, eventlog.NoSession(id)
	}
	found, err := c.session()
	if err != nil {
		return nil, err
	}
	s.memory.found(found)
	if call != nil {
		l.of = found.incarnation()
		s.memory.look(found)
		call.Store(lookKey{s, id}, l)
	}
	return found, nil
}

const (
	// noNews asks for no events.
	noNews = math.MaxInt64
	// newsLength is the most events that load fetches with a session.
	newsLength = 64
)

// Session returns a session as it is.
func (s *Store) Session(ctx context.Context, id string) (eventlog.Session, error) {
	if err := s.enter(ctx); err != nil {
		return eventlog.Session{}, err
	}
	defer s.leave()
	if k, _ := s.looked(ctx, id); k != nil {
		return k.session.info, nil
	}
	found, err := s.load(ctx, id)
	if err != nil {
		return eventlog.Session{}, err
	}
	return found.info, nil
}

// sessionPage is how many sessions are read at once.
const sessionPage = 256

// ListSessions returns sessions in the order of their ids. It reads every session between the bounds, and compares
// labels in this process.
func (s *Store) ListSessions(ctx context.Context, q eventlog.SessionQuery) ([]eventlog.Session, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	if err := q.Validate(); err != nil {
		return nil, err
	}
	var found []eventlog.Session
	for after := q.After; ; {
		page, err := s.sessionsAfter(ctx, after, q.Before)
		if err != nil {
			return nil, err
		}
		for _, info := range page {
			if !info.Matches(q.Labels) {
				continue
			}
			if found = append(found, info); len(found) == q.Limit {
				return found, nil
			}
		}
		if len(page) < sessionPage {
			return found, nil
		}
		after = page[len(page)-1].ID
	}
}

func (s *Store) sessionsAfter(ctx context.Context, after, before string) ([]eventlog.Session, error) {
	limited, cancel := s.reading(ctx)
	defer cancel()
	const sql = `SELECT ` + sessionColumns + ` FROM contextd_sessions s WHERE s.id > $1 AND ($2 = ''::bytea OR s.id < $2) ORDER BY s.id LIMIT $3`
	rows, _ := s.pool.Query(limited, sql, []byte(after), []byte(before), sessionPage) // the error is the rows' as well
	var page []eventlog.Session
	var c columns
	_, err := pgx.ForEachRow(rows, c.targets(), func() error {
		info := eventlog.Session{ID: string(c.id), Incarnation: eventlog.Incarnation(c.incarnation), Damaged: true}
		if read, err := c.session(); err == nil {
			info = read.info
		}
		page = append(page, info)
		return nil
	})
	return page, failure(ctx, err)
}
