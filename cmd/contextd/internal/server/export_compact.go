package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// The texts of a compaction that an export adds.
const (
	exportMode     = "host"
	exportStrategy = "contextd"
)

// compactTranscript adds a compaction to the first session, after which the harness shows what the session's context
// under the request's budget and policy has. Warnings name the differences. Nothing is recorded.
func (s *Server) compactTranscript(ctx context.Context, req *contextdv1.ExportTranscriptRequest, sessions []harness.Session, head eventlog.Seq) (warnings []string, err error) {
	session, err := s.existing(ctx, req.GetSessionId())
	if err != nil {
		return nil, err
	}
	policy, err := s.policy(session.policy, req.GetPolicy())
	if err != nil {
		return nil, err
	}
	policy.Reduction = inFull(policy.Reduction)
	made, err := s.timed(ctx, func() (*assemble.Context, error) {
		return s.engine.Assemble(ctx, assemble.Request{
			SessionID: req.GetSessionId(), AsOf: &head, Policy: policy, Preview: true,
			Budget: s.spec(session, req.GetBudget(), nil, render.NameContextd),
		})
	})
	if err != nil {
		return nil, err
	}
	boundary, ok := boundaryOf(made, sessions[0].Events)
	if !ok {
		return []string{fmt.Sprintf("nothing was collapsed: the context takes %d tokens and may take %d, so no compaction was added", made.Budget.Projected, made.Budget.Target)}, nil
	}
	sessions[0].Events = append(sessions[0].Events, boundary)
	if n := len(made.Projection.Redacted.Seqs()); n > 0 {
		warnings = append(warnings, fmt.Sprintf("%d messages that the context shows in part stand in full in the file, so the harness begins with more tokens", n))
	}
	return warnings, nil
}

// inFull changes a policy so that it drops whole groups, and edits messages only if it must: a harness has a message
// whole or not at all.
func inFull(p reduce.Policy) reduce.Policy {
	p.ToolResults = reduce.ToolResults{Default: reduce.Retention{Never: true}}
	p.Duplicates = false
	p.Clipping = reduce.Clipping{Exact: true}
	p.Thinking = reduce.Thinking{}
	return p
}

// boundaryOf makes the compaction event for the groups that a context collapsed; false if there are none. events are
// all events of the log up to the context's head.
func boundaryOf(c *assemble.Context, events []eventlog.Event) (eventlog.Event, bool) {
	var texts []string
	for i := range c.Messages {
		m := &c.Messages[i]
		if !m.Digest {
			continue
		}
		for j, b := range m.Blocks {
			if t, ok := b.(eventlog.Text); ok && (j >= len(m.Places) || m.Places[j] == eventlog.Place{}) {
				texts = append(texts, t.Text)
			}
		}
	}
	if len(texts) == 0 {
		return eventlog.Event{}, false
	}
	shown := slices.Concat(c.Projection.Kept.Seqs(), c.Projection.Redacted.Seqs())
	slices.Sort(shown)
	var kept []string
	for _, seq := range shown {
		e := &events[seq-1]
		if m, ok := e.Body.(*eventlog.Message); ok && m.Role != eventlog.RoleSystem {
			kept = append(kept, e.ID)
		}
	}
	before, after := c.Budget.Raw, c.Budget.Projected
	return eventlog.Event{
		ID:   fmt.Sprintf("contextd-compaction-%d", c.AsOf),
		Time: newest(events),
		Body: &eventlog.Compaction{
			Trigger: eventlog.TriggerThreshold, Summary: strings.Join(texts, "\n\n"), KeptEventIDs: kept,
			PreTokens: &before, PostTokens: &after, Mode: exportMode, Strategy: exportStrategy,
		},
	}, true
}

// newest returns the latest time of the events.
func newest(events []eventlog.Event) (at time.Time) {
	for _, e := range events {
		if e.Time.After(at) {
			at = e.Time
		}
	}
	return at
}
