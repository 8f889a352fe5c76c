package main

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// run is one session under one budget: what was measured, and what the daemon
// must give again after a restart.
type run struct {
	session *session
	id      string // of the session in the daemons
	budget  *contextdv1.Budget
	figures figures
	seen    []seen // per step; nil where the context was refused
}

// seen identifies a context.
type seen struct {
	messages int
	hash     string
}

// play appends the session step by step to both daemons and assembles its context
// before every model call.
func (r *run) play(ctx context.Context, disk, memory *daemon) error {
	first := client{api: disk.api, sessionID: r.id, budget: r.budget}
	other := client{api: memory.api, sessionID: r.id, budget: r.budget}
	check := newChecker()
	r.figures = newFigures()
	var meter meter
	next := 0
	for _, st := range r.session.steps {
		events := r.session.protos[next:st.before]
		for i, e := range events {
			check.observe(uint64(next+i+1), e)
		}
		next = st.before
		for _, c := range []*client{&first, &other} {
			if err := c.append(ctx, events); err != nil {
				return fmt.Errorf("%s before event %d: %w", r.id, st.before, err)
			}
		}
		a, err := first.assemble(ctx, &contextdv1.AssembleContextRequest{}, true)
		if err != nil {
			return fmt.Errorf("%s at event %d: %w", r.id, st.before, err)
		}
		r.seen = append(r.seen, seen{len(a.messages), a.header.GetPrefixHash()})
		other.held = a.messages
		b, err := other.assemble(ctx, &contextdv1.AssembleContextRequest{}, false)
		if err != nil {
			return fmt.Errorf("%s at event %d in memory: %w", r.id, st.before, err)
		}
		if a.refused != nil {
			if !proto.Equal(a.refused, b.refused) {
				r.figures.fault("the stores refuse differently")
			}
			r.figures.refuse(st, refusal(a.refused))
			continue
		}
		if b.header.GetPrefixHash() != a.header.GetPrefixHash() {
			r.figures.fault("other bytes on the other store")
		}
		again, err := first.assemble(ctx, &contextdv1.AssembleContextRequest{Preview: true}, false)
		if err != nil {
			return fmt.Errorf("%s at event %d again: %w", r.id, st.before, err)
		}
		if again.header.GetPrefixHash() != a.header.GetPrefixHash() {
			r.figures.fault("other bytes when assembled again")
		}
		if err := check.check(a); err != nil {
			kind, _, _ := strings.Cut(err.Error(), ":")
			r.figures.fault(kind)
			r.figures.example = fmt.Sprintf("%s at event %d: %v", r.id, st.before, err)
		}
		meter.measure(&r.figures, r.session, st, a.rendered(), a.header.GetBudget().GetTargetTokens())
	}
	return nil
}

// again assembles every step after a restart, as the log stood then.
func (r *run) again(ctx context.Context, disk *daemon) error {
	for i, st := range r.session.steps {
		if r.seen[i].messages == 0 {
			continue
		}
		asOf := uint64(st.before)
		stream, err := disk.api.AssembleContext(ctx, &contextdv1.AssembleContextRequest{
			SessionId: r.id, Budget: r.budget, AsOfSeq: &asOf, Preview: true,
			Have: &contextdv1.Have{MessageCount: uint32(r.seen[i].messages), PrefixHash: r.seen[i].hash},
		})
		if err != nil {
			return err
		}
		part, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("%s at event %d after a restart: %w", r.id, st.before, err)
		}
		if part.GetHeader().GetPrefixHash() != r.seen[i].hash {
			r.figures.fault("other bytes after a restart")
			r.figures.example = fmt.Sprintf("%s at event %d: other bytes after a restart", r.id, st.before)
		}
		for err == nil {
			_, err = stream.Recv()
		}
	}
	return nil
}

// refusal names what was too large.
func refusal(e *contextdv1.BudgetExceeded) string {
	var what []string
	var sum uint64
	for _, p := range e.GetParts() {
		what = append(what, p.GetWhat())
		if sum += p.GetTokens(); sum > e.GetTargetTokens() {
			break
		}
	}
	return strings.Join(what, " + ")
}
