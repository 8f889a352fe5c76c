package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// agent is one run of the loop.
type agent struct {
	client  contextdv1.ContextServiceClient
	out     io.Writer
	session string
	head    uint64 // the newest event that the agent knows of
	budget  uint64 // in tokens
	context heldContext
	pointer *contextdv1.RedactionPointer // the newest that was in a context
}

// runAgent asks a model that reads files, until it answers.
func runAgent(ctx context.Context, client contextdv1.ContextServiceClient, out io.Writer) error {
	// The budget is too small at first, to show what the daemon says then.
	a := agent{client: client, out: out, session: fmt.Sprintf("agent-go-%d", time.Now().UnixNano()), budget: 16}
	err := a.append(ctx,
		said("system", contextdv1.Role_ROLE_SYSTEM, text("You find faults in programs.")),
		said("question", contextdv1.Role_ROLE_USER, text("Why is the last flag not obeyed?")))
	if err != nil {
		return err
	}
	var m model
	for {
		if err := a.assemble(ctx); err != nil {
			return err
		}
		req, err := a.context.request(modelName)
		if err != nil {
			return err
		}
		resp, err := m.call(req)
		if err != nil {
			return err
		}
		if m.turns == 2 {
			// What the user says meanwhile goes into the log from elsewhere.
			if err := a.interject(ctx, "It worked last week."); err != nil {
				return err
			}
		}
		if err := a.append(ctx, resp.event(fmt.Sprintf("reply-%d", m.turns))); err != nil {
			return err
		}
		calls := resp.calls()
		if len(calls) == 0 {
			fmt.Fprintln(out, "answer:", resp.Content[0].Text)
			return a.resolve(ctx)
		}
		results := make([]*contextdv1.Event, len(calls))
		for i, call := range calls {
			results[i] = tool(call)
		}
		if err := a.append(ctx, results...); err != nil {
			return err
		}
	}
}

// append appends after what the agent knows of. Where the log has grown meanwhile, it
// reads what came and appends after it.
func (a *agent) append(ctx context.Context, events ...*contextdv1.Event) error {
	for {
		var resp *contextdv1.AppendEventsResponse
		err := patiently(ctx, func() (err error) {
			resp, err = a.client.AppendEvents(ctx, &contextdv1.AppendEventsRequest{
				SessionId: a.session, Events: events, ExpectedHead: proto.Uint64(a.head),
			})
			return err
		})
		if err == nil {
			a.head = resp.GetLastSeq()
			return nil
		}
		d := detailsOf(err)
		if d.reason != "HEAD_MISMATCH" {
			return err
		}
		head, convErr := strconv.ParseUint(d.metadata["head_seq"], 10, 64)
		if convErr != nil || head <= a.head {
			return err
		}
		if err := a.catchUp(ctx, head); err != nil {
			return err
		}
	}
}

// catchUp reads what others appended.
func (a *agent) catchUp(ctx context.Context, head uint64) error {
	stream, err := a.client.ReadEvents(ctx, &contextdv1.ReadEventsRequest{SessionId: a.session, FromSeq: a.head + 1, ToSeq: head})
	if err != nil {
		return err
	}
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range resp.GetEvents() {
			a.head = e.GetSeq()
			fmt.Fprintf(a.out, "meanwhile, event %d: %s\n", e.GetSeq(), e.GetMessage().GetBlocks()[0].GetText().GetText())
		}
	}
}

func (a *agent) interject(ctx context.Context, what string) error {
	_, err := a.client.AppendEvents(ctx, &contextdv1.AppendEventsRequest{
		SessionId: a.session, Events: []*contextdv1.Event{said("", contextdv1.Role_ROLE_USER, text(what))},
	})
	return err
}

// assemble brings the context up to date. Where it cannot be made to fit, it says what
// cannot be dropped and uses a larger budget.
func (a *agent) assemble(ctx context.Context) error {
	for {
		sent := 0
		err := patiently(ctx, func() (err error) {
			sent, err = a.context.assemble(ctx, a.client, &contextdv1.AssembleContextRequest{
				SessionId: a.session, Format: contextdv1.Format_FORMAT_ANTHROPIC,
				Budget: &contextdv1.Budget{MaxTokens: a.budget},
			})
			return err
		})
		if err == nil {
			h := a.context.header
			if pointers := h.GetProjection().GetRedactionPointers(); len(pointers) > 0 {
				a.pointer = pointers[0]
			}
			if b := h.GetHaveBroken(); b != nil {
				fmt.Fprintf(a.out, "rewritten from message %d on by %s: %s\n", b.GetIndex(), b.GetReducer(), b.GetReason())
			}
			fmt.Fprintf(a.out, "%d messages, %d of them new, %d tokens\n", len(a.context.messages), sent, h.GetBudget().GetProjectedTokens())
			return nil
		}
		d := detailsOf(err)
		if d.reason != "BUDGET_EXCEEDED" || a.budget >= 2400 {
			return err
		}
		for _, part := range d.parts {
			fmt.Fprintf(a.out, "%d tokens are too few: %s takes %d\n", a.budget, part.GetWhat(), part.GetTokens())
		}
		a.budget = 2400
	}
}

// resolve gets back a body that gave way to a pointer.
func (a *agent) resolve(ctx context.Context) error {
	if a.pointer == nil {
		return errors.New("no body gave way to a pointer")
	}
	resp, err := a.client.ResolvePointer(ctx, &contextdv1.ResolvePointerRequest{SessionId: a.session, Pointer: a.pointer.GetPointer()})
	if err != nil {
		return err
	}
	if hash := bodyHash(resp.GetBlock().GetToolResult()); hash != a.pointer.GetContentHash() {
		return fmt.Errorf("%s gives back %s, not %s", a.pointer.GetPointer(), hash, a.pointer.GetContentHash())
	}
	fmt.Fprintf(a.out, "%s is still there: %d characters\n", a.pointer.GetPointer(), a.pointer.GetContentChars())
	return nil
}

// patiently calls again where the daemon says how long to wait, three times at most.
// A call that appends can be repeated because its events have ids.
func patiently(ctx context.Context, call func() error) error {
	for left := 3; ; left-- {
		err := call()
		wait := detailsOf(err).retry
		if err == nil || wait == 0 || left == 0 {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
