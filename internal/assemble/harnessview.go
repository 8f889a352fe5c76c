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

// harnessConversation is conversation under harness_view. Where what was appended changes what is shown of
// earlier events, the whole log is read again.
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
	if ok && to == conv.Head() {
		return conv, nil
	}
	own := conv.Head()
	have := own
	if !ok || to < own {
		have = 0
	}
	if err := s.reserve(ctx, have, to); err != nil {
		return nil, err
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

// lastBoundary is the index of the last compaction that says what replaces what was dropped,
// or -1. One that does not, such as one whose summary never left its provider's
// servers, is passed over: after it nobody but the harness can go on. So is a caller's
// decision, which holds under every policy.
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

// harnessView reads a log as its harness goes on after the last boundary: the system
// prompt, what replaces all that was dropped, what was kept and what came since.
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

// appendBounded appends the events before a compaction as its harness shows them: the prompt, the
// boundary, and what was kept or is pinned. System messages that the harness injected are no prompt:
// it writes them again, or keeps them.
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
			// It comes before what was kept, whether or not the first of that is the
			// first of all.
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

// appendSeen appends an event as its harness sends it, or skips a message that it shows to no
// model.
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
