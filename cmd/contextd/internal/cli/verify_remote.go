package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// remoteSource verifies the sessions of a daemon.
type remoteSource struct{ api api }

func (r remoteSource) sessions(ctx context.Context, names []string) ([]string, error) {
	for _, id := range names {
		if _, err := r.api.GetSession(ctx, &contextdv1.GetSessionRequest{SessionId: id}); err != nil {
			return nil, err
		}
	}
	if len(names) > 0 {
		return names, nil
	}
	var ids []string
	err := eachSession(ctx, r.api, &contextdv1.ListSessionsRequest{PageSize: 1000}, func(s *contextdv1.Session) error {
		ids = append(ids, s.GetSessionId())
		return nil
	})
	return ids, err
}

func (r remoteSource) life(ctx context.Context, id string) (string, error) {
	resp, err := r.api.GetSession(ctx, &contextdv1.GetSessionRequest{SessionId: id})
	switch {
	case isNotFound(err):
		return "", nil
	case err != nil && !endsAudit(err):
		return "unknown", nil // the error comes again, and is reported, when the log is read
	}
	return resp.GetSession().GetIncarnation(), err
}

// log makes the daemon read the log up to its present head.
func (r remoteSource) log(ctx context.Context, id string) (auditedLog, error) {
	out := auditedLog{how: logRead}
	resp, err := r.api.GetSession(ctx, &contextdv1.GetSessionRequest{SessionId: id})
	if err != nil {
		return out, err
	}
	head, want := resp.GetSession().GetHeadSeq(), resp.GetSession().GetChainHead()
	if head == 0 {
		return out, nil
	}
	stream, err := r.api.ReadEvents(ctx, &contextdv1.ReadEventsRequest{SessionId: id, ToSeq: head})
	if err != nil {
		return out, err
	}
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return out, err
		}
		for _, e := range resp.GetEvents() {
			if out.events++; e.GetSeq() != out.events {
				return out, fmt.Errorf("event %d came where event %d belongs", e.GetSeq(), out.events)
			}
		}
		out.chain = resp.GetChainHead()
	}
	switch {
	case out.events != head:
		return out, fmt.Errorf("the log ends at event %d; its head is %d", out.events, head)
	case out.chain != want:
		return out, fmt.Errorf("the log's chain is %s; the session says %s", dash(out.chain), dash(want))
	}
	return out, nil
}

func (r remoteSource) chain(ctx context.Context, id string, seq uint64) (string, error) {
	stream, err := r.api.ReadEvents(ctx, &contextdv1.ReadEventsRequest{SessionId: id, FromSeq: seq, ToSeq: seq})
	if err != nil {
		return "", err
	}
	resp, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return "", fmt.Errorf("the log does not reach event %d", seq)
	}
	if err != nil {
		return "", err
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		return "", errors.Join(errors.New("more came than one event"), err)
	}
	return resp.GetChainHead(), nil
}

func (r remoteSource) projections(ctx context.Context, id string) ([]string, error) {
	var ids []string
	req := &contextdv1.ListProjectionsRequest{SessionId: id, Brief: true} // what a record lists grows with the log
	err := eachProjection(ctx, r.api, req, func(p *contextdv1.Projection) error {
		ids = append(ids, p.GetProjectionId())
		return nil
	})
	return ids, err
}

func (r remoteSource) replay(ctx context.Context, id, projection string) (string, error) {
	resp, err := r.api.ReplayProjection(ctx, &contextdv1.ReplayProjectionRequest{SessionId: id, ProjectionId: projection})
	if err == nil && !resp.GetSame() && resp.GetDifference() == "" {
		return "it is not the same", nil
	}
	return resp.GetDifference(), err
}
