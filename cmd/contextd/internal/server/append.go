package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// AppendEvents appends a batch; it is durable when the answer is there.
func (s *Server) AppendEvents(ctx context.Context, req *contextdv1.AppendEventsRequest) (*contextdv1.AppendEventsResponse, error) {
	p, err := s.admit(ctx, req)
	if err != nil {
		return nil, err
	}
	return s.settle(ctx, p)
}

// pendingAppend is a batch that has its place in the log and may not be durable
// yet.
type pendingAppend struct {
	sessionID string
	commit    eventlog.Commit
	admitted  time.Time
	// of is the incarnation that the batch went to; 0 if it makes the session.
	of     eventlog.Incarnation
	events []eventlog.Event // as they were given to the store
	sizes  []uint64         // of the events, in bytes
}

// admit checks and completes a batch and gives it its place in the log.
func (s *Server) admit(ctx context.Context, req *contextdv1.AppendEventsRequest) (pendingAppend, error) {
	if err := s.refuseDraining(); err != nil {
		return pendingAppend{}, err
	}
	if err := s.limits.CheckCount(len(req.GetEvents())); err != nil {
		return pendingAppend{}, err
	}
	events, err := wire.EventsToDomain(req.GetEvents())
	if err != nil {
		return pendingAppend{}, err
	}
	batch := eventlog.Batch{Events: events, ExpectedHead: seqOf(req.ExpectedHead)}
	return s.admitEvents(ctx, req.GetSessionId(), batch, req.GetKnown())
}

// seqOf is an optional seq of a request; nil if it has none.
func seqOf(seq *uint64) *eventlog.Seq {
	if seq == nil {
		return nil
	}
	return new(eventlog.Seq(*seq))
}

// admitEvents appends events to the session of the id, or makes it. It starts over with what it knows of the session
// if that is deleted meanwhile, or if somebody else makes it first.
func (s *Server) admitEvents(ctx context.Context, id string, b eventlog.Batch, mark *contextdv1.LogMark) (pendingAppend, error) {
	// Try the cached session first: usually nobody else changed it, and the store notices as it appends.
	if !s.store.Capabilities().OneWriter {
		if p, _, err := s.admitOnce(eventlog.FromMemory(ctx), id, b, mark); err == nil {
			return p, nil
		}
	}
	for {
		p, known, err := s.admitOnce(ctx, id, b, mark)
		if err == nil || ctx.Err() != nil || !changed(err, id, known) {
			return p, err
		}
	}
}

func (s *Server) admitOnce(ctx context.Context, id string, b eventlog.Batch, mark *contextdv1.LogMark) (pendingAppend, knownSession, error) {
	known, err := s.settingsOf(ctx, id)
	if err != nil {
		return pendingAppend{}, known, err
	}
	if err := s.lost(ctx, id, known, mark); err != nil {
		return pendingAppend{}, known, err
	}
	b.Of = &known.session.Incarnation
	p, err := s.admitKnown(ctx, id, known, b, true)
	return p, known, err
}

// changed reports whether an append failed because the session is no longer as known.
func changed(err error, id string, known knownSession) bool {
	var missing *eventlog.NotFoundError
	var exists *eventlog.ExistsError
	if known.exists {
		return errors.As(err, &missing) && missing.Kind == "session" && missing.Name == id
	}
	return errors.As(err, &exists)
}

// admitTo appends events to one incarnation of a session.
func (s *Server) admitTo(ctx context.Context, id string, b eventlog.Batch) (pendingAppend, error) {
	known, err := s.settingsOf(ctx, id)
	if err != nil {
		return pendingAppend{}, err
	}
	return s.admitKnown(ctx, id, known, b, false)
}

// admitKnown completes the events (ids, times, tokens) and appends them. checkRoom is false if they were checked
// against the session's limits before, as a part of a larger import.
func (s *Server) admitKnown(ctx context.Context, id string, known knownSession, b eventlog.Batch, checkRoom bool) (pendingAppend, error) {
	b.Events = slices.Clone(b.Events) // filled in for this session
	for i := range b.Events {
		b.Events[i] = s.scrub.Event(b.Events[i])
	}
	sizes, total, err := s.limits.CheckBatch(b.Events)
	if err != nil {
		return pendingAppend{}, err
	}
	if known.exists {
		if err := s.restoreCallIDs(ctx, id, known.settings.tokenizer, b.Events); err != nil {
			return pendingAppend{}, err
		}
	}
	p := pendingAppend{sessionID: id, admitted: s.clock(), of: known.session.Incarnation, events: b.Events, sizes: sizes}
	if checkRoom {
		if full := s.limits.CheckRoom(known.session, len(b.Events), total); full != nil {
			return s.admitRepeated(ctx, p, b, full)
		}
	}
	if err := s.complete(ctx, b.Events, known.settings.tokenizer, p.admitted); err != nil {
		return pendingAppend{}, err
	}
	b.Time = later(p.admitted, known.session.UpdateTime)
	push := func(ctx context.Context) (err error) {
		p.commit, err = s.store.Append(ctx, id, b)
		return err
	}
	total = 0 // again, with the ids that complete filled in
	for _, e := range b.Events {
		total += eventlog.Size(e)
	}
	if full := s.quotas.grow(ctx, total); full != nil {
		return s.admitRepeated(ctx, p, b, full)
	}
	if known.exists {
		err = push(ctx)
	} else {
		err = s.quotas.makeSession(ctx, push)
	}
	if err != nil {
		s.quotas.shrink(total) // nothing was stored
	}
	return p, err
}

// admitRepeated handles a batch for which there is no room. If the log holds it already it needs none, and its client
// must learn that it is stored. For any other batch it returns full.
func (s *Server) admitRepeated(ctx context.Context, p pendingAppend, b eventlog.Batch, full error) (pendingAppend, error) {
	if p.of == 0 || slices.ContainsFunc(b.Events, func(e eventlog.Event) bool { return e.ID == "" }) {
		return pendingAppend{}, full
	}
	p.sizes = make([]uint64, len(b.Events))            // no quota was taken
	b.ExpectedHead = new(eventlog.Seq(math.MaxUint64)) // no log has this head, so only a batch of duplicates passes
	var err error
	p.commit, err = s.store.Append(ctx, p.sessionID, b)
	if errors.As(err, new(*eventlog.HeadMismatchError)) {
		err = full
	}
	return p, err
}

// later is the later one of the time by the clock and that of what came before it: a clock may have been set back, or
// be slower than that of another daemon, and what is dated too old is deleted too early.
func later(now, before time.Time) time.Time {
	if before.After(now) {
		return before
	}
	return now
}

// complete gives the events what only the edge can give. Their tokens are stored with them,
// so they are counted before the append and not while the disk syncs.
func (s *Server) complete(ctx context.Context, events []eventlog.Event, tokenizer string, admitted time.Time) error {
	gauge, err := s.gauges(tokenizer)
	if err != nil {
		return err
	}
	done, err := s.turns.Take(ctx)
	if err != nil {
		return err
	}
	defer done()
	for i := range events {
		e := &events[i]
		if e.ID == "" {
			if e.ID, err = s.newID(); err != nil {
				return fmt.Errorf("make an event_id: %w", err)
			}
		}
		if e.Time.IsZero() {
			e.Time = admitted
		}
		e.Tokens = gauge.CountEvent(*e)
	}
	return nil
}

// settle waits until the batch is durable.
func (s *Server) settle(ctx context.Context, p pendingAppend) (*contextdv1.AppendEventsResponse, error) {
	receipts, err := p.commit.Wait(ctx)
	if err != nil {
		return nil, err
	}
	out := &contextdv1.AppendEventsResponse{Receipts: make([]*contextdv1.EventReceipt, len(receipts))}
	fresh := make([]eventlog.Event, 0, len(receipts))
	bytes, known := uint64(0), uint64(0)
	for i, r := range receipts {
		out.Receipts[i] = &contextdv1.EventReceipt{
			Seq: uint64(r.Seq), EventId: r.EventID, Duplicate: r.Duplicate, Tokens: tokensOf(r.Tokens),
		}
		if r.Duplicate {
			known += p.sizes[i]
			continue
		}
		if len(fresh) == 0 {
			out.FirstSeq = uint64(r.Seq)
		}
		out.LastSeq = uint64(r.Seq)
		e := p.events[i]
		e.Seq, e.Turn, e.Time = r.Seq, r.Turn, e.Time.UTC().Round(0)
		fresh = append(fresh, e)
		bytes += p.sizes[i]
	}
	s.quotas.shrink(known)
	s.meter.Appended(ctx, s.clock().Sub(p.admitted), len(fresh), bytes)
	out.Mark = s.markOf(ctx, p.sessionID)
	out.Budget = s.estimate(ctx, p, fresh)
	return out, nil
}

// tokensOf is an event's size in tokens. Media may claim more than its field holds.
func tokensOf(c eventlog.TokenCounts) uint32 { return uint32(min(c.Total(), math.MaxUint32)) }

// estimate is the budget after an append; nil if nothing is known. It must not fail the call: the events are durable,
// and a client that saw an error and repeated the append with new ids would store them twice.
func (s *Server) estimate(ctx context.Context, p pendingAppend, fresh []eventlog.Event) (out *contextdv1.BudgetReport) {
	defer func() {
		if v := recover(); v != nil {
			s.logger.ErrorContext(ctx, "no budget estimate", "session_id", p.sessionID, "panic", v, "stack", string(debug.Stack()))
			out = nil
		}
	}()
	report, ok, err := s.engine.Estimate(ctx, p.sessionID, p.of, fresh)
	var missing *eventlog.NotFoundError
	switch {
	case errors.As(err, &missing) || ctx.Err() != nil: // the session was deleted since, or nobody waits
	case err != nil:
		s.logger.WarnContext(ctx, "no budget estimate", "session_id", p.sessionID, "error", err)
	case ok:
		return wire.BudgetReportToProto(report)
	}
	return nil
}

// markOf is the state of the log that the client of an append knows now; nil if the session was deleted meanwhile.
// That fails no append, since the events are durable.
func (s *Server) markOf(ctx context.Context, id string) *contextdv1.LogMark {
	session, err := s.store.Session(eventlog.FromMemory(ctx), id)
	if err != nil {
		return nil
	}
	return wire.MarkToProto(session)
}
