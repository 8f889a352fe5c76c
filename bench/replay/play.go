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

// run is one session under one budget: what was measured, and what the daemon
// must give again after a restart.
type run struct {
	session *session
	id      string // of the session in the daemons
	budget  *contextdv1.Budget
	policy  *contextdv1.Policy // nil for the daemon's default
	figures figures
	seen    []seen // per step; without messages where the context was refused
	took    []time.Duration
	// announced are the events through which headers said that summaries are made.
	announced map[uint64]bool

	check *checker
	meter evaluate.Meter
	next  int // the first event that is not appended
	last  []*contextdv1.RenderedMessage
}

// seen identifies a context.
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

// advance appends what comes before a step.
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

// assemble asks for the context of a step, and for the same once more.
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

// repeat asks for the same again.
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

// judge checks and measures what came back.
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

// stable is how many leading messages are the same.
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

// play appends the session step by step to both daemons and assembles its context
// before every model call. An announced summary is waited for, as a model's time to
// think would allow, so that both daemons have the same ones.
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

// compare checks that both stores answer alike.
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

// again assembles every step after a restart, as the log was then.
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
