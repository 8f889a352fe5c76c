package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/internal/evaluate"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// run is one session under one budget: its measures, and the contexts that the daemon must give again after a
// restart.
type run struct {
	session *session
	id      string // the session's id in the daemons
	budget  *contextdv1.Budget
	policy  *contextdv1.Policy // nil for the daemon's default
	figures figures
	seen    []seen // per step; zero where the context was refused
	took    []time.Duration
	// announced are the last events of the summaries that headers announced.
	announced map[uint64]bool

	check *checker
	meter evaluate.Meter
	next  int // the index of the first event that is not appended yet
	last  []*contextdv1.RenderedMessage
}

// seen identifies a context that was assembled.
type seen struct {
	messages int
	hash     string
}

func newRun(s *session, id string, tokens uint64) *run {
	return &run{session: s, id: id, budget: window(tokens), figures: newFigures(), announced: map[uint64]bool{}, check: newChecker()}
}

func (r *run) client(d *daemon) *client {
	return &client{api: d.api, sessionID: r.id, budget: r.budget, policy: r.policy}
}

// advance appends the events before a step.
func (r *run) advance(ctx context.Context, st evaluate.Step, clients ...*client) error {
	events := r.session.protos[r.next:st.Before]
	for i, e := range events {
		r.check.observe(uint64(r.next+i+1), e)
	}
	r.next = st.Before
	for _, c := range clients {
		if err := c.append(ctx, events); err != nil {
			return fmt.Errorf("%s before event %d: %w", r.id, st.Before, err)
		}
	}
	return nil
}

// assemble assembles the context of a step, and repeats the request.
func (r *run) assemble(ctx context.Context, st evaluate.Step, c *client) (answer, error) {
	a, err := c.assemble(ctx, &contextdv1.AssembleContextRequest{}, true)
	if err != nil {
		return a, fmt.Errorf("%s at event %d: %w", r.id, st.Before, err)
	}
	r.seen = append(r.seen, seen{len(a.messages), a.header.GetPrefixHash()})
	r.took = append(r.took, a.took)
	if through := a.header.GetSummarizingThroughSeq(); through > 0 {
		r.announced[through] = true
	}
	return a, nil
}

// repeat checks that the same request gives the same context again.
func (r *run) repeat(ctx context.Context, st evaluate.Step, c *client, a answer) error {
	if a.refused != nil {
		return nil
	}
	again, err := c.assemble(ctx, &contextdv1.AssembleContextRequest{Preview: true}, false)
	if err != nil {
		return fmt.Errorf("%s at event %d again: %w", r.id, st.Before, err)
	}
	if again.header.GetPrefixHash() != a.header.GetPrefixHash() {
		r.fault(st, "other bytes when assembled again", "")
	}
	return nil
}

// judge checks and measures an answer.
func (r *run) judge(st evaluate.Step, a answer) {
	if a.refused != nil {
		r.figures.Refuse(st, refusal(a.refused))
		return
	}
	if err := r.check.check(a); err != nil {
		kind, detail, _ := strings.Cut(err.Error(), ": ")
		r.fault(st, kind, detail)
	}
	if c := a.header.GetCache(); c != nil && int(c.GetStableMessages()) != stable(r.last, a.messages) {
		r.fault(st, "stable messages miscounted", fmt.Sprintf("%d instead of %d", c.GetStableMessages(), stable(r.last, a.messages)))
	}
	r.last = a.messages
	unnamed := r.figures.Causes[""]
	r.meter.Measure(&r.figures.Figures, r.session.Session, st, a.rendered(), a.header.GetBudget().GetTargetTokens())
	if r.figures.Causes[""] > unnamed {
		r.fault(st, "prefix changed without a cause", "")
	}
}

// stable is how many leading messages are equal.
func stable(a, b []*contextdv1.RenderedMessage) int {
	n := 0
	for n < min(len(a), len(b)) && bytes.Equal(a[n].GetJson(), b[n].GetJson()) {
		n++
	}
	return n
}

func (r *run) fault(st evaluate.Step, what, detail string) {
	r.figures.fault(what, strings.TrimSpace(fmt.Sprintf("%s at event %d (%s) %s", r.id, st.Before, r.session.File, detail)))
}

// play appends the session step by step to both daemons, and assembles its context before every model call.
// It waits for announced summaries, which would become ready while a real model works, so that both daemons
// have the same ones.
func (r *run) play(ctx context.Context, disk, memory *daemon) error {
	first, other := r.client(disk), r.client(memory)
	for _, st := range r.session.Steps {
		if err := r.advance(ctx, st, first, other); err != nil {
			return err
		}
		a, err := r.assemble(ctx, st, first)
		if err != nil {
			return err
		}
		other.held = a.messages
		b, err := other.assemble(ctx, &contextdv1.AssembleContextRequest{}, false)
		if err != nil {
			return fmt.Errorf("%s at event %d in memory: %w", r.id, st.Before, err)
		}
		r.compare(st, a, b)
		for d, h := range map[*daemon]*contextdv1.ContextHeader{disk: a.header, memory: b.header} {
			if through := h.GetSummarizingThroughSeq(); through > 0 {
				if err := d.watcher.await(ctx, r.id, through); err != nil {
					return fmt.Errorf("%s store: %w", d.store, err)
				}
			}
		}
		if err := r.repeat(ctx, st, first, a); err != nil {
			return err
		}
		r.judge(st, a)
	}
	return nil
}

// compare checks that both stores give the same context.
func (r *run) compare(st evaluate.Step, a, b answer) {
	switch {
	case !proto.Equal(a.refused, b.refused):
		r.fault(st, "the stores refuse differently", "")
	case a.header.GetPrefixHash() != b.header.GetPrefixHash():
		r.fault(st, "other bytes on the other store", "")
	case a.header.GetSummarizingThroughSeq() != b.header.GetSummarizingThroughSeq():
		r.fault(st, "other summaries on the other store", "")
	}
}

// again assembles every step after a restart, as of that step's head.
func (r *run) again(ctx context.Context, disk *daemon) error {
	for i, st := range r.session.Steps[:len(r.seen)] {
		if r.seen[i].messages == 0 {
			continue
		}
		asOf := uint64(st.Before)
		stream, err := disk.api.AssembleContext(ctx, &contextdv1.AssembleContextRequest{
			SessionId: r.id, Budget: r.budget, Policy: r.policy, AsOfSeq: &asOf, Preview: true,
			Have: &contextdv1.Have{MessageCount: uint32(r.seen[i].messages), PrefixHash: r.seen[i].hash},
		})
		if err != nil {
			return err
		}
		part, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("%s at event %d after a restart: %w", r.id, st.Before, err)
		}
		if part.GetHeader().GetPrefixHash() != r.seen[i].hash {
			r.fault(st, "other bytes after a restart", "")
		}
		for err == nil {
			_, err = stream.Recv()
		}
	}
	return nil
}

// refusal says what was too large.
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
