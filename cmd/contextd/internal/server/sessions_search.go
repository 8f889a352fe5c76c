package server

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// orders map each order to its sort key; sessions with greater keys come first.
var orders = map[contextdv1.SessionOrder]func(eventlog.Session) int64{
	contextdv1.SessionOrder_SESSION_ORDER_UNSPECIFIED: func(eventlog.Session) int64 { return 0 },
	contextdv1.SessionOrder_SESSION_ORDER_UPDATE_TIME: func(s eventlog.Session) int64 { return s.UpdateTime.UnixNano() },
	contextdv1.SessionOrder_SESSION_ORDER_CREATE_TIME: func(s eventlog.Session) int64 { return s.CreateTime.UnixNano() },
	contextdv1.SessionOrder_SESSION_ORDER_HEAD_SEQ:    func(s eventlog.Session) int64 { return int64(s.Head) },
	contextdv1.SessionOrder_SESSION_ORDER_TURNS:       func(s eventlog.Session) int64 { return int64(s.Turns) },
	contextdv1.SessionOrder_SESSION_ORDER_LOG_BYTES:   func(s eventlog.Session) int64 { return int64(s.LogBytes) },
}

// place is a session's position in an order.
type place struct {
	Key int64
	ID  string
}

func (p place) compare(other place) int {
	return cmp.Or(cmp.Compare(other.Key, p.Key), strings.Compare(p.ID, other.ID))
}

// first is a heap of the first places in the order, as many as a page has, with the last of them on top.
type first []place

func (f first) Len() int           { return len(f) }
func (f first) Less(i, j int) bool { return f[i].compare(f[j]) > 0 }
func (f first) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *first) Push(x any)        { *f = append(*f, x.(place)) }
func (f *first) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}

// searchSessions lists sessions that contain a text, or in an order that the store does not keep. It reads all
// sessions, but has at most a page of them in memory.
func (s *Server) searchSessions(ctx context.Context, req *contextdv1.ListSessionsRequest, token string) (*contextdv1.ListSessionsResponse, error) {
	var after *place
	if token != "" {
		after = &place{}
		if err := json.Unmarshal([]byte(token), after); err != nil {
			return nil, &eventlog.InvalidError{Field: "page_token", Reason: "must be the next_page_token of an earlier page of the same order"}
		}
	}
	found, err := s.placesAfter(ctx, req, after, pageSize(req.GetPageSize())+1)
	if err != nil {
		return nil, err
	}
	out := &contextdv1.ListSessionsResponse{}
	for i, bytes := 0, 0; i < len(found); i++ {
		if len(out.GetSessions()) == pageSize(req.GetPageSize()) || bytes >= listBytes {
			last, err := json.Marshal(found[i-1])
			out.NextPageToken = encodePageToken(string(last))
			return out, err
		}
		session, err := s.listed(ctx, found[i].ID)
		if eventlog.IsMissing(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		converted, err := wire.SessionToProto(session)
		if err != nil {
			return nil, err
		}
		out.Sessions = append(out.Sessions, converted)
		bytes += proto.Size(converted)
	}
	return out, nil
}

// listed returns a session for a list. A damaged session has only the fields that can be read.
func (s *Server) listed(ctx context.Context, id string) (eventlog.Session, error) {
	session, err := s.store.Session(ctx, id)
	if _, damaged := errors.AsType[*eventlog.CorruptError](err); damaged {
		return eventlog.Session{ID: id, Damaged: true}, nil
	}
	return session, err
}

var errFull = errors.New("all are found")

// placesAfter returns the first limit places after one, in order. It takes a turn of the processor, because it goes
// through all sessions.
func (s *Server) placesAfter(ctx context.Context, req *contextdv1.ListSessionsRequest, after *place, limit int) ([]place, error) {
	done, err := s.turns.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	key, byID := orders[req.GetOrder()], req.GetOrder() == contextdv1.SessionOrder_SESSION_ORDER_UNSPECIFIED
	query := strings.ToLower(req.GetQuery())
	from := ""
	if byID && after != nil {
		from = after.ID
	}
	var found first
	err = s.eachSession(ctx, eventlog.SessionQuery{After: from, Labels: req.GetLabels(), Limit: listPage, Brief: true}, func(session eventlog.Session) error {
		at := place{key(session), session.ID}
		if after != nil && at.compare(*after) <= 0 || !holds(session, query) {
			return nil
		}
		if byID && len(found) == limit {
			return errFull
		}
		if len(found) == limit && at.compare(found[0]) >= 0 {
			return nil
		}
		heap.Push(&found, at)
		if len(found) > limit {
			heap.Pop(&found)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFull) {
		return nil, err
	}
	slices.SortFunc(found, place.compare)
	return found, nil
}

// eachSession calls f for all sessions of a query, whose Limit is how many are read at once.
func (s *Server) eachSession(ctx context.Context, q eventlog.SessionQuery, f func(eventlog.Session) error) error {
	for {
		page, err := s.store.ListSessions(ctx, q)
		if err != nil {
			return err
		}
		for _, session := range page {
			if err := f(session); err != nil {
				return err
			}
			q.After = session.ID
		}
		if len(page) < q.Limit {
			return ctx.Err()
		}
	}
}

// holds reports whether a session's id or labels contain query, which is in lower case.
func holds(s eventlog.Session, query string) bool {
	if query == "" || strings.Contains(strings.ToLower(s.ID), query) {
		return true
	}
	for key, value := range s.Labels {
		if strings.Contains(strings.ToLower(key), query) || strings.Contains(strings.ToLower(value), query) {
			return true
		}
	}
	return false
}
