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

// playback plays sessions back on another daemon as their runtime would: it appends the same events, and
// assembles a context before the answer of each model call.
type playback struct {
	from, to api
	cmd      *cobra.Command
	sessions []*contextdv1.Session
}

// begin creates the sessions, so that the page lists them before they are played.
func (p *playback) begin(ctx context.Context) (err error) {
	if p.sessions, err = listSessions(ctx, p.from, &contextdv1.ListSessionsRequest{}, nil, 0); err != nil {
		return err
	}
	for _, s := range p.sessions {
		if _, err := p.to.CreateSession(ctx, &contextdv1.CreateSessionRequest{SessionId: s.GetSessionId(), Labels: s.GetLabels()}); err != nil {
			return err
		}
	}
	return nil
}

// run plays each session while the page shows them. A context that cannot be assembled ends the playback of
// its session only.
func (p *playback) run(ctx context.Context, each *contextdv1.AssembleContextRequest) error {
	for _, s := range p.sessions {
		err := p.session(ctx, s, proto.CloneOf(each))
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the page is no longer wanted
		}
		if err != nil {
			fmt.Fprintf(p.cmd.ErrOrStderr(), "warning: %s ends on the page before %s\n", s.GetSessionId(), oneLine(status.Convert(err).Message(), 0))
		}
	}
	return nil
}

// eventsAtOnce is how many events one call appends at most.
const eventsAtOnce = 128

func (p *playback) session(ctx context.Context, s *contextdv1.Session, req *contextdv1.AssembleContextRequest) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req.SessionId = s.GetSessionId()
	if req.GetBudget() == nil {
		model, err := p.model(ctx, s)
		if err != nil {
			return err
		}
		if model != "" {
			req.Budget = &contextdv1.Budget{Model: model}
		}
	}
	turn := uint32(0)
	var waiting []*contextdv1.Event
	flush := func() error {
		if len(waiting) == 0 {
			return nil
		}
		_, err := p.to.AppendEvents(ctx, &contextdv1.AppendEventsRequest{SessionId: s.GetSessionId(), Events: waiting})
		waiting = nil
		return err
	}
	err := p.events(ctx, s, func(e *contextdv1.Event) error {
		calls := e.GetTurn() > turn && e.GetSeq() > 1
		turn = e.GetTurn()
		if calls || len(waiting) == eventsAtOnce {
			if err := flush(); err != nil {
				return err
			}
		}
		if calls {
			if err := p.context(ctx, req); err != nil {
				return fmt.Errorf("event %d: %w", e.GetSeq(), err)
			}
		}
		waiting = append(waiting, e)
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// model is the model of the last message that names one; empty if none does.
func (p *playback) model(ctx context.Context, s *contextdv1.Session) (model string, err error) {
	err = p.events(ctx, s, func(e *contextdv1.Event) error {
		if m := e.GetMessage().GetModel(); m != "" {
			model = m
		}
		return nil
	})
	return model, err
}

func (p *playback) events(ctx context.Context, s *contextdv1.Session, each func(*contextdv1.Event) error) error {
	stream, err := p.from.ReadEvents(ctx, &contextdv1.ReadEventsRequest{SessionId: s.GetSessionId()})
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

// context assembles and records the context of a model call, without messages that the last context had.
func (p *playback) context(ctx context.Context, req *contextdv1.AssembleContextRequest) error {
	parts, err := p.to.AssembleContext(ctx, req)
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
