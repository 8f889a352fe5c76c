package server

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/memory"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// chunkBytes is how large messages of a stream become, single large parts aside.
// gRPC's buffers grow in steps of 32 KiB and 1 MiB: above the first, each message
// takes a buffer of the second.
const chunkBytes = 31 << 10

// readStream is the server's end of ReadEvents.
type readStream = grpc.ServerStreamingServer[contextdv1.ReadEventsResponse]

// ReadEvents sends a range of the log, and what is appended later if asked to.
func (s *Server) ReadEvents(req *contextdv1.ReadEventsRequest, stream readStream) error {
	ctx := stream.Context()
	id, to := req.GetSessionId(), eventlog.Seq(req.GetToSeq())
	next := max(eventlog.Seq(req.GetFromSeq()), 1)
	if req.GetFollow() {
		if err := s.refuseDraining(); err != nil {
			return err
		}
		var cancel context.CancelFunc
		ctx, cancel = s.untilDrained(ctx)
		defer cancel()
	}
	session, err := s.store.Session(ctx, id)
	if err == nil || req.GetKnown() != nil && eventlog.IsMissing(err, "session") {
		err = cmp.Or(s.lost(ctx, id, knownSession{session: session, exists: err == nil}, req.GetKnown()), err)
	}
	if err != nil {
		return err
	}
	sent := req.GetKnown() // the mark of the newest event that was sent, or else what the client knew before
	for {
		// Up to its head, the log is compared with this state of it before anything is sent.
		last := session.Head
		if to != 0 {
			last = min(last, to)
		}
		if next <= last {
			if sent, err = s.sendRange(ctx, stream, session, next, last); err != nil {
				return followEnd(ctx, err)
			}
			next = last + 1
		}
		if !req.GetFollow() || (to != 0 && next > to) {
			return nil
		}
		if _, err = s.store.WaitPast(ctx, id, session.Head); err == nil {
			session, err = s.stillThere(ctx, session, sent)
		}
		if err != nil {
			return followEnd(ctx, err)
		}
	}
}

// followEnd reports a shutdown to a follower that it cuts off.
func followEnd(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errDrained) {
		return apierr.ErrDraining
	}
	return err
}

// sendRange sends the events from..to of a session, which has them, and returns the mark of the last. If another session
// has the id by then, or the log has other events in their place, it sends nothing of that.
func (s *Server) sendRange(ctx context.Context, stream readStream, of eventlog.Session, from, to eventlog.Seq) (sent *contextdv1.LogMark, err error) {
	id, last := of.ID, eventlog.Seq(0)
	out := &contextdv1.ReadEventsResponse{}
	size := 0
	flush := func() error {
		if len(out.GetEvents()) == 0 {
			return nil
		}
		chain, err := s.store.ChainHead(ctx, id, last)
		if err != nil {
			return err
		}
		if _, err := s.stillThere(ctx, of, wire.MarkToProto(of)); err != nil {
			return err
		}
		out.ChainHead, out.Incarnation = wire.ChainHead(chain), of.IncarnationName()
		err = stream.Send(out)
		sent = &contextdv1.LogMark{Incarnation: out.GetIncarnation(), HeadSeq: uint64(last), ChainHead: out.GetChainHead()}
		out, size = &contextdv1.ReadEventsResponse{}, 0
		return err
	}
	// An event may be as large as any, and is in memory from here until it is sent.
	var held *memory.Grant
	defer func() { held.Release() }()
	take := func() (err error) {
		held.Release()
		held, err = s.work.Take(ctx, s.limits.MaxEventBytes)
		return err
	}
	if err := take(); err != nil {
		return nil, err
	}
	for e, err := range s.store.Read(ctx, id, from, to) {
		if err != nil {
			return nil, err
		}
		converted := wire.EventToProto(e)
		n := framed(proto.Size(converted)) + binary.MaxVarintLen32 // with its count
		if size > 0 && size+n > chunkBytes {
			held.Keep(uint64(size + n))
			if err := flush(); err != nil {
				return nil, err
			}
			if err := take(); err != nil {
				return nil, err
			}
		}
		out.Events = append(out.Events, converted)
		out.Tokens = append(out.Tokens, tokensOf(e.Tokens))
		size += n
		last = e.Seq
	}
	held.Keep(uint64(size))
	return sent, flush()
}

// stillThere returns a session as it is now, or *eventlog.NotFoundError if it is gone, even if another has its id. No
// incarnation comes back, so if it is still there, what was read by the id since it was found is its own. It returns
// *eventlog.LostError if the log has other events than those of the mark, which takes a store with other writers.
func (s *Server) stillThere(ctx context.Context, of eventlog.Session, mark *contextdv1.LogMark) (eventlog.Session, error) {
	now, err := s.store.Session(ctx, of.ID)
	if err == nil && now.Incarnation != of.Incarnation {
		err = eventlog.NoSession(of.ID)
	}
	if err != nil || s.store.Capabilities().OneWriter {
		return now, err
	}
	return now, s.lost(ctx, of.ID, knownSession{session: now, exists: true}, mark)
}

// framed bounds the size of an embedded message with its tag and length.
func framed(size int) int { return size + 6 }

// reserveEvent takes memory for the events that a call reads one after the other, until its answer is
// sent.
func (s *Server) reserveEvent(ctx context.Context) error {
	held, err := s.work.Take(ctx, s.limits.MaxEventBytes)
	if err == nil {
		memory.UntilSent(ctx, held)
	}
	return err
}
