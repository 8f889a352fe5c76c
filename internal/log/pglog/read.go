package pglog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/eventcodec"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

func corruptEvent(of *session, seq eventlog.Seq, reason string) error {
	return &eventlog.CorruptError{Session: of.info.ID, What: fmt.Sprintf("event %d", seq), Reason: reason}
}

// storedEvent is a row of events.
type storedEvent struct {
	Seq                 int64
	Record, Head, Chain []byte
}

func (r storedEvent) decode(of *session) (eventlog.Event, *storagev1.Head, error) {
	seq := eventlog.Seq(r.Seq)
	var m storagev1.Event
	if err := proto.Unmarshal(r.Record, &m); err != nil {
		return eventlog.Event{}, nil, corruptEvent(of, seq, err.Error())
	}
	head := &storagev1.Head{}
	if err := proto.Unmarshal(r.Head, head); err != nil {
		return eventlog.Event{}, nil, corruptEvent(of, seq, err.Error())
	}
	e, ok := eventcodec.Decode(&m)
	if !ok {
		return eventlog.Event{}, nil, corruptEvent(of, seq, "its content is of no known kind")
	}
	e.Seq, e.Turn = seq, head.GetTurns()
	return e, head, nil
}

// follows reports whether the chain leads from that after the event before to this event.
func (r storedEvent) follows(before []byte) bool {
	var at [sha256.Size]byte
	copy(at[:], before)
	chain := chainOver(at, r.Record, r.Head)
	return bytes.Equal(chain[:], r.Chain)
}

// Read yields events, page by page: it holds no connection while the caller works.
func (s *Store) Read(ctx context.Context, id string, from, to eventlog.Seq) iter.Seq2[eventlog.Event, error] {
	return func(yield func(eventlog.Event, error) bool) {
		of, err := s.find(ctx, id)
		if err == nil {
			err = s.eachEvent(ctx, of, from, to, func(r storedEvent) (bool, error) {
				e, _, err := r.decode(of)
				return err == nil && yield(e, nil), err
			})
		}
		if err != nil {
			yield(eventlog.Event{}, err)
		}
	}
}

// find is load for callers that have not entered.
func (s *Store) find(ctx context.Context, id string) (*session, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	if k, _ := s.looked(ctx, id); k != nil {
		return k.session, nil
	}
	return s.load(ctx, id)
}

// eachEvent calls f for from..to until it returns false. to is 0, or after the session's head, for
// the head.
func (s *Store) eachEvent(ctx context.Context, of *session, from, to eventlog.Seq, f func(storedEvent) (bool, error)) error {
	next, last := max(int64(min(from, of.info.Head+1)), 1), int64(of.info.Head)
	if to != 0 {
		last = min(last, number(to))
	}
	_, l := s.looked(ctx, of.info.ID)
	var chain []byte // after the event before
	for limit := firstPage; next <= last; {
		page := l.newsFrom(next, of.incarnation())
		page = page[:min(int64(len(page)), last-next+1)]
		if len(page) == 0 {
			var err error
			if page, err = s.eventPage(ctx, of, next, min(last, next+int64(limit)-1)); err != nil {
				return err
			}
		}
		if chain != nil && page[0].Seq == next && !page[0].follows(chain) { // the database was set back since the page before
			return s.missing(ctx, of, next, chainBreaks)
		}
		size := 0
		for _, r := range page {
			if err := ctx.Err(); err != nil {
				return err
			}
			if r.Seq != next {
				return s.missing(ctx, of, next, notThere)
			}
			size += len(r.Record)
			chain = r.Chain
			next++
			if more, err := f(r); err != nil || !more {
				return err
			}
		}
		limit = nextPage(limit, size)
	}
	if last == int64(of.info.Head) {
		s.memory.readTo(of)
	}
	return nil
}

const pageSQL = `SELECT e.seq, e.record, e.head, e.chain FROM contextd_shares h JOIN contextd_events e ON e.segment = h.segment AND e.seq <= h.up_to
	WHERE h.incarnation = $1 AND e.seq >= $2 AND e.seq <= $3 ORDER BY e.seq`

// eventPage returns the events from..to of a session that is still there.
func (s *Store) eventPage(ctx context.Context, of *session, from, to int64) ([]storedEvent, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	page, err := s.events(ctx, pageSQL, of.incarnation(), from, to)
	if err == nil && len(page) == 0 {
		err = s.missing(ctx, of, from, notThere)
	}
	return page, err
}

// events are those that a query yields.
func (s *Store) events(ctx context.Context, sql string, arguments ...any) ([]storedEvent, error) {
	limited, cancel := s.reading(ctx)
	defer cancel()
	rows, _ := s.pool.Query(limited, sql, arguments...) // the error is the rows' as well
	page, err := pgx.CollectRows(rows, pgx.RowToStructByPos[storedEvent])
	if err != nil {
		return nil, failure(ctx, err)
	}
	return page, nil
}

// What may be wrong with an event.
const (
	notThere    = "it is missing"
	chainBreaks = "the hash chain breaks: it, or an event before it, is not what was written"
)

// missing returns the error for an event that is not as it should be: *NotFoundError if the session was deleted
// meanwhile, *LostError if the database was set back, else *CorruptError with the reason.
func (s *Store) missing(ctx context.Context, of *session, seq int64, reason string) error {
	now, err := s.load(ctx, of.info.ID)
	if err != nil {
		return err
	}
	lost := &eventlog.LostError{Session: of.info.ID, Known: of.info.Head, Head: now.info.Head}
	switch {
	case now.info.Incarnation != of.info.Incarnation:
		return eventlog.NoSession(of.info.ID)
	case now.info.Head < of.info.Head:
		return lost
	case !now.same(of): // as after appends, too
		at, err := s.events(ctx, pageSQL, of.incarnation(), int64(of.info.Head), int64(of.info.Head))
		if err != nil {
			return err
		}
		if lost.Rewritten = len(at) > 0 && !bytes.Equal(at[0].Chain, of.info.ChainHead); lost.Rewritten {
			return lost
		}
	}
	return corruptEvent(of, eventlog.Seq(seq), reason)
}

// ReadRuns implements eventlog.RunsReader: one query reads a page, however many runs it has.
func (s *Store) ReadRuns(ctx context.Context, id string, runs eventlog.Ranges) iter.Seq2[eventlog.Event, error] {
	return func(yield func(eventlog.Event, error) bool) {
		of, err := s.find(ctx, id)
		if err == nil {
			err = s.eachIn(ctx, of, runs.UpTo(of.info.Head), yield)
		}
		if err != nil {
			yield(eventlog.Event{}, err)
		}
	}
}

func (s *Store) eachIn(ctx context.Context, of *session, runs eventlog.Ranges, yield func(eventlog.Event, error) bool) error {
	seqs := runs.Seqs()
	for limit := lastPage; len(seqs) > 0; {
		asked := make([]int64, min(limit, len(seqs)))
		for i := range asked {
			asked[i] = number(seqs[i])
		}
		page, err := s.runsPage(ctx, of, asked)
		if err != nil {
			return err
		}
		size := 0
		for i, r := range page {
			if err := ctx.Err(); err != nil {
				return err
			}
			if r.Seq != asked[i] {
				return s.missing(ctx, of, asked[i], notThere)
			}
			e, _, err := r.decode(of)
			if err != nil {
				return err
			}
			if size += len(r.Record); !yield(e, nil) {
				return nil
			}
		}
		if len(page) < len(asked) {
			return s.missing(ctx, of, asked[len(page)], notThere)
		}
		seqs, limit = seqs[len(asked):], nextPage(limit, size)
	}
	return nil
}

func (s *Store) runsPage(ctx context.Context, of *session, seqs []int64) ([]storedEvent, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	links := of.links()
	segments := make([]int64, len(seqs))
	for i, seq := range seqs {
		segments[i] = links[slices.IndexFunc(links, func(l link) bool { return seq <= l.upTo })].segment
	}
	// The subquery with a limit is looked up in the index for each event: see moveSession.
	const sql = `SELECT e.seq, e.record, e.head, e.chain FROM unnest($2::bigint[], $3::bigint[]) AS w (segment, seq)
		JOIN contextd_shares h ON h.incarnation = $1 AND h.segment = w.segment AND w.seq <= h.up_to CROSS JOIN LATERAL
			(SELECT x.seq, x.record, x.head, x.chain FROM contextd_events x WHERE x.segment = w.segment AND x.seq = w.seq LIMIT 1) AS e
		ORDER BY e.seq`
	return s.events(ctx, sql, of.incarnation(), segments, seqs)
}

// ChainHead returns the chain after an event.
func (s *Store) ChainHead(ctx context.Context, id string, seq eventlog.Seq) ([]byte, error) {
	of, err := s.find(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case seq > of.info.Head:
		return nil, eventlog.NoEvent(seq)
	case seq == of.info.Head:
		return of.info.ChainHead, nil
	case seq == 0:
		return nil, nil
	}
	if _, l := s.looked(ctx, id); l != nil && l.of == of.incarnation() && l.before == number(seq) && l.chain != nil {
		return l.chain, nil
	}
	page, err := s.eventPage(ctx, of, int64(seq), int64(seq))
	if err != nil {
		return nil, err
	}
	return page[0].Chain, nil
}

// Verify reads a session's whole log and checks what is derivable: seqs are dense, the chain holds,
// the events pass the rules of admission again, and each head follows from them. It returns nil or
// a *eventlog.CorruptError that names the first event at fault.
func (s *Store) Verify(ctx context.Context, id string) error {
	of, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	var at state
	err = s.eachEvent(ctx, of, 1, 0, func(r storedEvent) (bool, error) {
		e, stored, err := r.decode(of)
		if err != nil {
			return false, err
		}
		head, _, err := at.head.Admit([]eventlog.Event{e})
		if err != nil {
			return false, corruptEvent(of, e.Seq, "it breaks the rules of admission: "+err.Error())
		}
		size := at.bytes + eventlog.Size(e)
		chain := chainOver(at.chain, r.Record, r.Head)
		if string(chain[:]) != string(r.Chain) {
			return false, corruptEvent(of, e.Seq, chainBreaks)
		}
		at.apply(e.Seq, stored, r.Chain)
		if !sameHead(at.head, head) || at.bytes != size {
			return false, corruptEvent(of, e.Seq, "its head does not follow from the events")
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	if !sameHead(at.head, of.at.head) || at.bytes != of.at.bytes || at.chain != of.at.chain {
		return &eventlog.CorruptError{Session: id, What: fmt.Sprintf("session %q", id), Reason: "its head does not follow from its events"}
	}
	return nil
}
