package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// retelling has sessions take place once more: what was appended is appended, and before each
// model call its context is assembled, as a runtime would have done it.
type retelling struct {
	from, to api
	cmd      *cobra.Command
	sessions []*contextdv1.Session
}

// begin makes the sessions, so that they can be found before they have taken place.
func (r *retelling) begin(ctx context.Context) (err error) {
	if r.sessions, err = listSessions(ctx, r.from, &contextdv1.ListSessionsRequest{}, nil, 0); err != nil {
		return err
	}
	for _, s := range r.sessions {
		if _, err := r.to.CreateSession(ctx, &contextdv1.CreateSessionRequest{SessionId: s.GetSessionId(), Labels: s.GetLabels()}); err != nil {
			return err
		}
	}
	return nil
}

// all has each session take place, while the page shows them. A context that cannot be assembled
// ends its session's, and not the others'.
func (r *retelling) all(ctx context.Context, each *contextdv1.AssembleContextRequest) error {
	for _, s := range r.sessions {
		err := r.session(ctx, s, proto.CloneOf(each))
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the page is no longer wanted
		}
		if err != nil {
			fmt.Fprintf(r.cmd.ErrOrStderr(), "warning: %s ends on the page before %s\n", s.GetSessionId(), oneLine(status.Convert(err).Message(), 0))
		}
	}
	return nil
}

// most is how many events are appended at once.
const most = 128

func (r *retelling) session(ctx context.Context, s *contextdv1.Session, req *contextdv1.AssembleContextRequest) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req.SessionId = s.GetSessionId()
	if req.GetBudget() == nil {
		model, err := r.model(ctx, s)
		if err != nil {
			return err
		}
		if model != "" {
			req.Budget = &contextdv1.Budget{Model: model}
		}
	}
	turn := uint32(0)
	var waiting []*contextdv1.Event
	told := func() error {
		if len(waiting) == 0 {
			return nil
		}
		_, err := r.to.AppendEvents(ctx, &contextdv1.AppendEventsRequest{SessionId: s.GetSessionId(), Events: waiting})
		waiting = nil
		return err
	}
	err := r.events(ctx, s, func(e *contextdv1.Event) error {
		calls := e.GetTurn() > turn && e.GetSeq() > 1
		turn = e.GetTurn()
		if calls || len(waiting) == most {
			if err := told(); err != nil {
				return err
			}
		}
		if calls {
			if err := r.context(ctx, req); err != nil {
				return fmt.Errorf("event %d: %w", e.GetSeq(), err)
			}
		}
		waiting = append(waiting, e)
		return nil
	})
	if err != nil {
		return err
	}
	return told()
}

// model is the one that wrote the last message of a session; empty where none is named.
func (r *retelling) model(ctx context.Context, s *contextdv1.Session) (model string, err error) {
	err = r.events(ctx, s, func(e *contextdv1.Event) error {
		if m := e.GetMessage().GetModel(); m != "" {
			model = m
		}
		return nil
	})
	return model, err
}

func (r *retelling) events(ctx context.Context, s *contextdv1.Session, each func(*contextdv1.Event) error) error {
	stream, err := r.from.ReadEvents(ctx, &contextdv1.ReadEventsRequest{SessionId: s.GetSessionId()})
	if err != nil {
		return err
	}
	for {
		some, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range some.GetEvents() {
			if err := each(e); err != nil {
				return err
			}
		}
	}
}

// context records the context of a model call. What the one before had is not sent again.
func (r *retelling) context(ctx context.Context, req *contextdv1.AssembleContextRequest) error {
	parts, err := r.to.AssembleContext(ctx, req)
	if err != nil {
		return err
	}
	for {
		part, err := parts.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h := part.GetHeader(); h != nil {
			req.Have = &contextdv1.Have{MessageCount: h.GetMessageCount(), PrefixHash: h.GetPrefixHash()}
		}
	}
}
