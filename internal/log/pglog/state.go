package pglog

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

const (
	// completeUpTo is the most open calls that are written in full with every event's head.
	completeUpTo = 16
	// completeEvery is the most events that are read to find the head after one.
	completeEvery = 64
)

// after returns the state after an event, and the event's head in its stored form.
func (s state) after(f eventlog.FreshEvent, record []byte, update time.Time, first bool) (state, []byte, error) {
	seq := f.Event.Seq
	s.head.Apply(seq, f.Change)
	s.bytes += eventlog.Size(f.Event)
	s.update = update
	m := s.message()
	if len(s.head.OpenCalls) > completeUpTo && !first && seq%completeEvery != 0 {
		m.Complete, m.Closed, m.Opened = false, f.Change.Closed, openCalls(f.Change.Opened)
	}
	head, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return s, nil, err
	}
	s.chain = chainOver(s.chain, record, head)
	return s, head, nil
}

// message returns the state as a complete head without the chain.
func (s *state) message() *storagev1.Head {
	return &storagev1.Head{
		Turns: s.head.Turns, LastGroup: s.head.LastGroup, LogBytes: s.bytes,
		UpdateSeconds: s.update.Unix(), UpdateNanos: int32(s.update.Nanosecond()),
		Complete: true, Opened: openCalls(s.head.OpenCalls),
	}
}

// encode returns the state in the form that is stored with the session.
func (s *state) encode() ([]byte, error) {
	m := s.message()
	m.Chain = s.chain[:]
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

func openCalls(all []eventlog.OpenCall) []*storagev1.OpenCall {
	out := make([]*storagev1.OpenCall, len(all))
	for i, c := range all {
		out[i] = &storagev1.OpenCall{CallId: c.CallID, Seq: uint64(c.Seq), GroupId: c.GroupID}
	}
	return out
}

// apply moves the state past the event at seq as its head says, in place.
func (s *state) apply(seq eventlog.Seq, m *storagev1.Head, chain []byte) {
	if m.GetComplete() {
		s.head.OpenCalls = nil
	}
	c := eventlog.HeadChange{Turns: m.GetTurns(), LastGroup: m.GetLastGroup(), Closed: m.GetClosed()}
	for _, o := range m.GetOpened() {
		c.Opened = append(c.Opened, eventlog.OpenCall{CallID: o.GetCallId(), Seq: eventlog.Seq(o.GetSeq()), GroupID: o.GetGroupId()})
	}
	s.head.Apply(seq, c)
	s.bytes = m.GetLogBytes()
	s.update = time.Unix(m.GetUpdateSeconds(), int64(m.GetUpdateNanos())).UTC()
	copy(s.chain[:], chain)
}

// chainOver returns the chain after an event.
func chainOver(before [sha256.Size]byte, record, head []byte) (after [sha256.Size]byte) {
	h := sha256.New()
	h.Write(before[:])
	h.Write(record)
	h.Write(head)
	h.Sum(after[:0])
	return after
}

// stateAt returns the state after an event of the session; at 0, that of an empty log.
func (s *Store) stateAt(ctx context.Context, of *session, seq eventlog.Seq) (at state, err error) {
	switch seq {
	case 0:
		return state{}, nil
	case of.at.head.Seq:
		return of.at, nil
	}
	limited, cancel := s.reading(ctx)
	defer cancel()
	type stored struct {
		Seq         int64
		Head, Chain []byte
	}
	const sql = `SELECT seq, head, chain FROM contextd_events WHERE segment = $1 AND seq <= $2 ORDER BY seq DESC LIMIT $3`
	rows, _ := s.pool.Query(limited, sql, of.linkOf(seq).segment, int64(seq), completeEvery) // the error is the rows' as well
	heads, err := pgx.CollectRows(rows, pgx.RowToStructByPos[stored])
	if err != nil {
		return state{}, failure(ctx, err)
	}
	messages := make([]*storagev1.Head, 0, len(heads))
	for _, h := range heads {
		m := &storagev1.Head{}
		if err := proto.Unmarshal(h.Head, m); err != nil {
			return state{}, corruptEvent(of, eventlog.Seq(h.Seq), err.Error())
		}
		if messages = append(messages, m); m.GetComplete() {
			break
		}
	}
	if n := len(messages); n == 0 || heads[0].Seq != int64(seq) || !messages[n-1].GetComplete() {
		return state{}, s.missing(ctx, of, int64(seq), "it, or the complete head before it, is missing")
	}
	for i, m := range slices.Backward(messages) {
		at.apply(eventlog.Seq(heads[i].Seq), m, heads[i].Chain)
	}
	return at, nil
}

func sameHead(a, b eventlog.Head) bool {
	return a.Seq == b.Seq && a.Turns == b.Turns && a.LastGroup == b.LastGroup && slices.Equal(a.OpenCalls, b.OpenCalls)
}
