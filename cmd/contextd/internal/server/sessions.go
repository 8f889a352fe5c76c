package server

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/memory"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// defaultPage is the size of a page if the request does not give one.
const defaultPage = 100

// CreateSession makes an empty session with settings of its own.
func (s *Server) CreateSession(ctx context.Context, req *contextdv1.CreateSessionRequest) (*contextdv1.CreateSessionResponse, error) {
	if err := s.refuseDraining(); err != nil {
		return nil, err
	}
	if err := wire.CheckLabels(req.GetLabels()); err != nil {
		return nil, err
	}
	forPolicy, err := s.takePolicy(ctx, "", req.GetPolicy(), req.GetBudget())
	if err != nil {
		return nil, err
	}
	defer forPolicy.Release()
	if _, err := s.policy(nil, req.GetPolicy()); err != nil {
		return nil, err
	}
	w := wire.Settings{Policy: req.GetPolicy(), Budget: req.GetBudget()}
	if _, err := s.newSettings(w); err != nil {
		return nil, err
	}
	encoded, err := w.Encode()
	if err != nil {
		return nil, err
	}
	session, err := s.create(ctx, eventlog.Session{
		ID: req.GetSessionId(), CreateTime: s.clock(), Labels: req.GetLabels(), Settings: encoded,
	})
	if err != nil {
		return nil, err
	}
	out, err := wire.SessionToProto(session)
	return &contextdv1.CreateSessionResponse{Session: out}, err
}

func (s *Server) create(ctx context.Context, session eventlog.Session) (eventlog.Session, error) {
	var out eventlog.Session
	err := s.quotas.makeSession(ctx, func(ctx context.Context) (err error) {
		out, err = s.store.CreateSession(ctx, session)
		return err
	})
	return out, err
}

// GetSession returns a session with its settings.
func (s *Server) GetSession(ctx context.Context, req *contextdv1.GetSessionRequest) (*contextdv1.GetSessionResponse, error) {
	session, err := s.store.Session(ctx, req.GetSessionId())
	if err != nil {
		return nil, err
	}
	out, err := wire.SessionToProto(session)
	return &contextdv1.GetSessionResponse{Session: out}, err
}

// ListSessions lists sessions by id.
func (s *Server) ListSessions(ctx context.Context, req *contextdv1.ListSessionsRequest) (*contextdv1.ListSessionsResponse, error) {
	if err := wire.CheckLabels(req.GetLabels()); err != nil {
		return nil, err
	}
	_ = grpc.SetHeader(ctx, metadata.Pairs(wire.ClockHeader, s.clock().UTC().Format(time.RFC3339Nano))) // fails only outside a call
	after, err := decodePageToken(req.GetPageToken())
	if err != nil {
		return nil, err
	}
	held, err := s.work.Take(ctx, (listStep+1)*s.limits.MaxPolicyBytes)
	if err != nil {
		return nil, err
	}
	memory.UntilSent(ctx, held)
	if req.GetQuery() != "" || req.GetOrder() != contextdv1.SessionOrder_SESSION_ORDER_UNSPECIFIED {
		return s.searchSessions(ctx, req, after)
	}
	out := &contextdv1.ListSessionsResponse{}
	for size, bytes, step := pageSize(req.GetPageSize()), 0, listStep; ; {
		// One session more than the page has shows whether there is a next page.
		some := min(size-len(out.GetSessions()), step)
		sessions, err := s.store.ListSessions(ctx, eventlog.SessionQuery{After: after, Limit: some + 1, Labels: req.GetLabels()})
		if err != nil {
			return nil, err
		}
		for _, session := range sessions[:min(some, len(sessions))] {
			converted, err := wire.SessionToProto(session)
			if err != nil {
				return nil, err
			}
			out.Sessions = append(out.Sessions, converted)
			bytes += proto.Size(converted)
			after = session.ID
		}
		if len(sessions) <= some {
			return out, nil
		}
		if bytes < smallPolicy*len(out.GetSessions()) {
			step = listPage
		}
		if len(out.GetSessions()) == size || bytes >= listBytes {
			out.NextPageToken = encodePageToken(after)
			return out, nil
		}
	}
}

// A page of sessions ends early if large policies make it large. Sessions are read a few at a time, and more at a time
// as long as they are small.
const (
	listStep  = 3
	listBytes = 2 << 20
)

// ForkSession makes a session that shares another's events up to a point.
func (s *Server) ForkSession(ctx context.Context, req *contextdv1.ForkSessionRequest) (*contextdv1.ForkSessionResponse, error) {
	if err := s.refuseDraining(); err != nil {
		return nil, err
	}
	parent, err := s.store.Session(ctx, req.GetSessionId())
	if err != nil {
		return nil, err
	}
	at := cmp.Or(eventlog.Seq(req.GetAtSeq()), parent.Head)
	if err := s.quotas.grow(ctx, stored(parent)); err != nil {
		return nil, err
	}
	var fork eventlog.Session
	err = s.quotas.makeSession(ctx, func(ctx context.Context) (err error) {
		fork, err = s.store.Fork(ctx, eventlog.ForkRequest{
			ParentID: req.GetSessionId(), At: at, NewID: req.GetNewSessionId(), Time: later(s.clock(), parent.UpdateTime),
		})
		return err
	})
	s.quotas.shrink(stored(parent) - min(stored(fork), stored(parent))) // what it does not share
	if err != nil {
		return nil, err
	}
	s.audit(ctx, "session forked", fork.ID, "parent", req.GetSessionId(), "at", at)
	out, err := wire.SessionToProto(fork)
	return &contextdv1.ForkSessionResponse{Session: out}, err
}

// DeleteSession removes a session and everything derived from it.
func (s *Server) DeleteSession(ctx context.Context, req *contextdv1.DeleteSessionRequest) (*contextdv1.DeleteSessionResponse, error) {
	if err := s.refuseDraining(); err != nil {
		return nil, err
	}
	id := req.GetSessionId()
	session, err := s.store.Session(ctx, id)
	if _, corrupt := errors.AsType[*eventlog.CorruptError](err); err != nil && (!corrupt || req.GetKnown() != nil) {
		return nil, err
	}
	if err := s.lost(ctx, id, knownSession{session: session, exists: err == nil}, req.GetKnown()); err != nil {
		return nil, err
	}
	of := session.Incarnation // 0 of one that is damaged
	head := seqOf(req.ExpectedHead)
	left := leaver{stored(session), func() bool { return gone(ctx, s.store, id, of) }}
	err = s.quotas.deleteSession(ctx, of, left, func() error { return s.store.DeleteSession(ctx, id, of, head) })
	// The session may be gone although the call failed after that.
	if err == nil || left.gone() {
		s.audit(ctx, "session deleted", id, "events", session.Head, "bytes", session.LogBytes)
		s.settings.forget(of)
		s.engine.Forget(id)
		s.compaction.compactor.Forget(id, of)
	}
	if err == nil && req.GetWaitUntilErased() {
		err = s.store.WaitErased(ctx, of)
	}
	if err != nil {
		return nil, err
	}
	return &contextdv1.DeleteSessionResponse{Erased: req.GetWaitUntilErased()}, nil
}

func (s *Server) refuseDraining() error {
	if s.draining.Err() != nil {
		return apierr.ErrDraining
	}
	return nil
}

func pageSize(asked uint32) int {
	if asked == 0 {
		return defaultPage
	}
	return int(asked)
}

// encodePageToken returns a page token, which is opaque to clients: it has the key after which the page starts.
func encodePageToken(after string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(after))
}

func decodePageToken(token string) (string, error) {
	after, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", &eventlog.InvalidError{Field: "page_token", Reason: "must be the next_page_token of an earlier page"}
	}
	return string(after), nil
}
