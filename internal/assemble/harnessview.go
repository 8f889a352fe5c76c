package assemble

import (
	"context"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
)

// harnessConversation is conversation under harness_view. If new events change which earlier ones are
// shown, the whole log is read again.
func (s *session) harnessConversation(ctx context.Context, store Store, gauge budget.Gauge, asOf *eventlog.Seq, policy projection.Options) (*reduce.Conversation, error) {
	to, err := s.upTo(ctx, store, asOf)
	if err != nil {
		return nil, err
	}
	key := conversationKey(gauge, policy)
	conv, ok := s.convs.get(key)
	if !ok {
		s.makeRoom()
		conv = policy.NewConversation(gauge)
	}
	own := conv.Head()
	have := own
	if !ok || to < own {
		have = 0
	}
	if err := s.reserve(ctx, have, to); err != nil {
		return nil, err
	}
	if err := s.computing.Begin(ctx); err != nil {
		return nil, err
	}
	if ok && to == own {
		return conv, nil
	}
	if ok && to > own {
		fresh, err := events(ctx, store, s.id, own+1, to)
		if err != nil {
			return nil, err
		}
		if on, err := Extend(ctx, conv, fresh, policy); on || err != nil {
			return conv, err // what was appended stays
		}
	}
	all, err := events(ctx, store, s.id, 1, to)
	if err != nil {
		return nil, err
	}
	if conv, err = harnessView(ctx, gauge, all, policy); err != nil {
		return nil, err
	}
	if !ok || to >= own {
		s.convs.put(key, conv, 0)
	}
	return conv, nil
}

// lastBoundary returns the index of the last compaction by a harness that says what replaces the dropped messages, or
// -1. It skips compactions that do not, such as one whose summary stays on its provider's servers: only the harness
// can go on from those. It also skips callers' compactions, which hold under every policy.
func lastBoundary(all []eventlog.Event) (int, harness.Boundary) {
	for i := len(all) - 1; i >= 0; i-- {
		if c, ok := all[i].Body.(*eventlog.Compaction); ok && c.Decision == nil {
			if b := harness.BoundaryOf(c); len(b.Blocks) > 0 {
				return i, b
			}
		}
	}
	return -1, harness.Boundary{}
}

// harnessView reads a log as its harness uses it after the last boundary: the system prompt, the blocks that replace
// the dropped messages, the kept messages, and all later ones.
func harnessView(ctx context.Context, gauge budget.Gauge, all []eventlog.Event, policy projection.Options) (*reduce.Conversation, error) {
	conv := policy.NewConversation(gauge)
	at, boundary := lastBoundary(all)
	if at >= 0 {
		if err := appendBounded(ctx, conv, all[:at], all[at], boundary); err != nil {
			return nil, err
		}
	}
	since := all[at+1:]
	left := harness.Left(since)
	for _, e := range since {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if at >= 0 && harness.Summarizes(e, all[at]) {
			conv.Skip(e) // the boundary shows it
			continue
		}
		appendSeen(conv, e, left)
	}
	return conv, nil
}

// appendBounded appends the events before a compaction as its harness shows them: the system prompt, the
// boundary, and what was kept or is pinned. System messages that the harness injected are not part of the
// prompt: the harness writes those again, or lists them as kept.
func appendBounded(ctx context.Context, conv *reduce.Conversation, before []eventlog.Event, compaction eventlog.Event, boundary harness.Boundary) error {
	kept := map[string]bool{}
	for _, id := range compaction.Body.(*eventlog.Compaction).KeptEventIDs {
		kept[id] = true
	}
	prompt, placed := true, false
	for _, e := range before {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, ok := e.Body.(*eventlog.Message)
		if !ok {
			conv.Append(e)
			continue
		}
		prompt = prompt && m.Role == eventlog.RoleSystem && e.Labels[transcript.LabelInjected] != "true"
		if prompt {
			conv.Append(e)
			continue
		}
		if !placed && !boundary.Last {
			// The boundary comes before all that was kept, even if the first message of all was kept.
			conv.AppendBoundary(compaction, e.Seq, boundary.Blocks)
			placed = true
		}
		if kept[e.ID] || m.Pinned {
			appendSeen(conv, e, nil)
		} else {
			conv.Skip(e)
		}
	}
	if !placed {
		conv.AppendBoundary(compaction, compaction.Seq, boundary.Blocks)
	}
	conv.AppendBoundaryEvent(compaction)
	return nil
}

// appendSeen appends an event as its harness sends it. It skips messages that the harness shows to no
// model: those in left, and those that harness.Seen excludes.
func appendSeen(conv *reduce.Conversation, e eventlog.Event, left map[string]bool) {
	if m, ok := e.Body.(*eventlog.Message); ok && !m.Pinned && (left[e.ID] || !harness.Seen(e)) {
		conv.Skip(e)
		return
	}
	conv.Append(harness.Sent(e))
}

func events(ctx context.Context, store eventlog.Reader, id string, from, to eventlog.Seq) ([]eventlog.Event, error) {
	if from > to {
		return nil, nil
	}
	var all []eventlog.Event
	for e, err := range store.Read(ctx, id, from, to) {
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}
