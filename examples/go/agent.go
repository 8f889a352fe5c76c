package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/client"
	"github.com/contextd/contextd/client/read"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// agent is one run of the agent loop.
type agent struct {
	client  *client.Client
	out     io.Writer
	session string
	head    uint64 // the newest event that the agent has seen
	budget  uint64 // in tokens
	context *client.Context
	pointer *contextdv1.RedactionPointer // the newest pointer in a context
}

// runAgent runs the loop until the model answers without calling a tool.
func runAgent(ctx context.Context, c *client.Client, out io.Writer) error {
	// The first budget is too small on purpose, to show the daemon's error.
	a := agent{client: c, out: out, session: fmt.Sprintf("agent-go-%d", time.Now().UnixNano()), budget: 16}
	err := a.append(ctx, client.System("You find faults in programs."), client.User("Why is the last flag not obeyed?"))
	if err != nil {
		return err
	}
	var m model
	for {
		if err := a.assemble(ctx); err != nil {
			return err
		}
		request, err := a.context.Body(map[string]any{"model": modelName, "max_tokens": 1024})
		if err != nil {
			return err
		}
		response, err := m.call(request)
		if err != nil {
			return err
		}
		reply, err := read.Response(response)
		if err != nil {
			return err
		}
		if m.turns == 2 {
			// The user's next message is appended by another client meanwhile.
			if _, err := a.client.Append(ctx, a.session, client.User("It worked last week.")); err != nil {
				return err
			}
		}
		if err := a.append(ctx, reply); err != nil {
			return err
		}
		var results []*contextdv1.Event
		for _, b := range reply.GetMessage().GetBlocks() {
			if call := b.GetToolCall(); call != nil {
				results = append(results, tool(call))
			}
		}
		if len(results) == 0 {
			fmt.Fprintln(out, "answer:", reply.GetMessage().GetBlocks()[0].GetText().GetText())
			return a.resolve(ctx)
		}
		if err := a.append(ctx, results...); err != nil {
			return err
		}
	}
}

// append appends after the newest event that the agent has seen. If others appended meanwhile, it reads their
// events and tries again.
func (a *agent) append(ctx context.Context, events ...*contextdv1.Event) error {
	for {
		resp, err := a.client.AppendEvents(ctx, &contextdv1.AppendEventsRequest{
			SessionId: a.session, Events: events, ExpectedHead: proto.Uint64(a.head),
		})
		if err == nil {
			a.head = resp.GetLastSeq()
			return nil
		}
		var refused *client.Error
		if !errors.As(err, &refused) || !errors.Is(err, client.ErrHeadMismatch) || refused.Number("head_seq") <= a.head {
			return err
		}
		if err := a.catchUp(ctx, refused.Number("head_seq")); err != nil {
			return err
		}
	}
}

// catchUp reads the events that others appended.
func (a *agent) catchUp(ctx context.Context, head uint64) error {
	for e, err := range a.client.Events(ctx, &contextdv1.ReadEventsRequest{SessionId: a.session, FromSeq: a.head + 1, ToSeq: head}) {
		if err != nil {
			return err
		}
		a.head = e.GetSeq()
		fmt.Fprintf(a.out, "meanwhile, event %d: %s\n", e.GetSeq(), e.GetMessage().GetBlocks()[0].GetText().GetText())
	}
	return nil
}

// assemble updates the context. If it cannot fit the budget, assemble prints which parts cannot be dropped,
// and tries a larger budget.
func (a *agent) assemble(ctx context.Context) error {
	for {
		made, err := a.client.Assemble(ctx, &contextdv1.AssembleContextRequest{
			SessionId: a.session, Format: contextdv1.Format_FORMAT_ANTHROPIC,
			Budget: &contextdv1.Budget{MaxTokens: a.budget},
		})
		if err == nil {
			a.context = made
			a.report()
			return nil
		}
		var refused *client.Error
		if !errors.As(err, &refused) || !errors.Is(err, client.ErrBudgetExceeded) || a.budget >= 2400 {
			return err
		}
		for _, part := range refused.Exceeded.GetParts() {
			fmt.Fprintf(a.out, "%d tokens are too few: %s takes %d\n", a.budget, part.GetWhat(), part.GetTokens())
		}
		a.budget = 2400
	}
}

func (a *agent) report() {
	h := a.context.Header
	if pointers := h.GetProjection().GetRedactionPointers(); len(pointers) > 0 {
		a.pointer = pointers[0]
	}
	if b := h.GetHaveBroken(); b != nil {
		fmt.Fprintf(a.out, "rewritten from message %d on by %s: %s\n", b.GetIndex(), b.GetReducer(), b.GetReason())
	}
	fmt.Fprintf(a.out, "%d messages, %d of them new, %d tokens\n", len(a.context.Messages), a.context.Sent, h.GetBudget().GetProjectedTokens())
}

// resolve recalls a body that was replaced by a pointer.
func (a *agent) resolve(ctx context.Context) error {
	if a.pointer == nil {
		return errors.New("no body gave way to a pointer")
	}
	if err := recall(ctx, a.client, a.session, a.pointer); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s is still there: %d characters\n", a.pointer.GetPointer(), a.pointer.GetContentChars())
	return nil
}
