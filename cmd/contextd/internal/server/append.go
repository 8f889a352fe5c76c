package server

import (
	"context"
	"fmt"
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
	sizes     []uint64 // of the events, in bytes
}

// admit checks and completes a batch and gives it its place in the log.
func (s *Server) admit(ctx context.Context, req *contextdv1.AppendEventsRequest) (pendingAppend, error) {
	if err := s.refuseDraining(); err != nil {
		return pendingAppend{}, err
	}
	if err := s.limits.checkCount(len(req.GetEvents())); err != nil {
		return pendingAppend{}, err
	}
	events, err := wire.EventsToDomain(req.GetEvents())
	if err != nil {
		return pendingAppend{}, err
	}
	var expected *eventlog.Seq
	if req.ExpectedHead != nil {
		head := eventlog.Seq(req.GetExpectedHead())
		expected = &head
	}
	return s.admitEvents(ctx, req.GetSessionId(), events, expected)
}

// admitEvents fills the events in; the caller gives them away.
func (s *Server) admitEvents(ctx context.Context, id string, events []eventlog.Event, expected *eventlog.Seq) (pendingAppend, error) {
	total, err := s.limits.checkBatch(events)
	if err != nil {
		return pendingAppend{}, err
	}
	known, err := s.checkSession(ctx, id, len(events), total)
	if err != nil {
		return pendingAppend{}, err
	}
	if known.exists {
		if err := s.restoreCallIDs(ctx, id, known.settings.tokenizer, events); err != nil {
			return pendingAppend{}, err
		}
	}
	p := pendingAppend{sessionID: id, admitted: s.clock(), sizes: make([]uint64, len(events))}
	if err := s.complete(events, known.settings.tokenizer, p); err != nil {
		return pendingAppend{}, err
	}
	batch := eventlog.Batch{Events: events, ExpectedHead: expected, Time: p.admitted}
	push := func() (err error) {
		p.commit, err = s.store.Append(ctx, id, batch)
		return err
	}
	if known.exists {
		err = push()
	} else {
		err = s.quota.make(push)
	}
	return p, err
}

type knownSession struct {
	settings settings
	exists   bool
}

// checkSession finds the session's settings and holds its log against the
// limits.
func (s *Server) checkSession(ctx context.Context, id string, events int, bytes uint64) (knownSession, error) {
	found, exists, err := s.settingsOf(ctx, id)
	if err != nil {
		return knownSession{}, err
	}
	var session eventlog.Session
	if exists && (s.limits.MaxSessionEvents > 0 || s.limits.MaxSessionBytes > 0) {
		if session, err = s.store.Session(ctx, id); err != nil {
			return knownSession{}, err
		}
	}
	return knownSession{found, exists}, s.limits.checkRoom(session, events, bytes)
}

// complete gives the events what only the edge can give, and measures them.
func (s *Server) complete(events []eventlog.Event, tokenizer string, p pendingAppend) error {
	gauge, err := s.gauges(tokenizer)
	if err != nil {
		return err
	}
	for i := range events {
		e := &events[i]
		p.sizes[i] = eventlog.Size(*e)
		if e.ID == "" {
			if e.ID, err = s.newID(); err != nil {
				return fmt.Errorf("make an event_id: %w", err)
			}
		}
		if e.Time.IsZero() {
			e.Time = p.admitted
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
	fresh, bytes := 0, uint64(0)
	for i, r := range receipts {
		out.Receipts[i] = &contextdv1.EventReceipt{
			Seq: uint64(r.Seq), EventId: r.EventID, Duplicate: r.Duplicate, Tokens: uint32(r.Tokens.Total()),
		}
		if r.Duplicate {
			continue
		}
		if fresh == 0 {
			out.FirstSeq = uint64(r.Seq)
		}
		out.LastSeq = uint64(r.Seq)
		fresh++
		bytes += p.sizes[i]
	}
	s.meter.Appended(ctx, s.clock().Sub(p.admitted), fresh, bytes)
	report, ok, err := s.engine.Estimate(ctx, p.sessionID)
	switch {
	case err != nil:
		// The events are durable and the client must learn it; the estimate can wait.
		s.logger.WarnContext(ctx, "no budget estimate", "session_id", p.sessionID, "error", err)
	case ok:
		out.Budget = wire.BudgetReportToProto(report)
	}
	return out, nil
}
