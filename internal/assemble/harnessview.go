package assemble

import (
	"context"
	"slices"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
)

// shown returns the log up to asOf, or to its head, as the policy has it read: whole, or
// as the harness that compacted it last goes on. The error is a *NothingShownError if that
// leaves nothing of a log that has messages.
func (s *session) shown(ctx context.Context, store Store, gauge budget.Accountant, asOf *eventlog.Seq, policy projection.Options, fingerprint string) (*reduce.Conversation, error) {
	conv, err := s.read(ctx, store, gauge, asOf, policy, fingerprint)
	if err != nil {
		return nil, err
	}
	if len(conv.Groups()) == 0 && len(conv.Reminders()) == 0 && conv.Tokens() > 0 {
		return nil, &NothingShownError{SessionID: s.id, Tokens: conv.Tokens()}
	}
	return conv, nil
}

func (s *session) read(ctx context.Context, store Store, gauge budget.Accountant, asOf *eventlog.Seq, policy projection.Options, fingerprint string) (*reduce.Conversation, error) {
	if policy.Name != projection.HarnessView {
		return s.conversation(ctx, store, gauge, asOf, policy, fingerprint)
	}
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
	if ok && to > conv.Head() {
		fresh, err := events(ctx, store, s.id, conv.Head()+1, to)
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

// conversationKey names how a log is read: counted by what, and by which policy.
func conversationKey(gauge budget.Accountant, policy projection.Options) string {
	key := gauge.Name()
	if policy.Name == projection.HarnessView {
		key += "/" + projection.HarnessView
	}
	if policy.Scrub {
		key += "/scrub"
	}
	return key
}

// atHand reports whether the log is read, but for what takes next to nothing.
func (s *session) atHand(ctx context.Context, store eventlog.Reader, gauge budget.Accountant, policy projection.Options) (bool, error) {
	to, err := s.upTo(ctx, store, nil)
	if err != nil {
		return false, err
	}
	conv, ok := s.convs.get(conversationKey(gauge, policy))
	return ok && s.workFor(conv.Head(), to) < leastWork, nil
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

// Extend goes on reading a log as the policy has it read. It reports false, with nothing
// done, where the new events change what is shown of earlier ones: all is to be read again.
func Extend(ctx context.Context, conv *reduce.Conversation, fresh []eventlog.Event, policy projection.Options) (bool, error) {
	whole := policy.Name != projection.HarnessView
	if at, _ := lastBoundary(fresh); !whole && (at >= 0 || slices.ContainsFunc(fresh, harness.Follows)) {
		return false, nil
	}
	for _, e := range fresh {
		if err := ctx.Err(); err != nil {
			return true, err
		}
		if whole {
			conv.Append(e)
		} else {
			appendSeen(conv, e, nil)
		}
	}
	return true, nil
}

// ConversationOf reads a whole log as the policy has it read. The events must have been
// admitted.
func ConversationOf(ctx context.Context, gauge budget.Accountant, all []eventlog.Event, policy projection.Options) (*reduce.Conversation, error) {
	if policy.Name == projection.HarnessView {
		return harnessView(ctx, gauge, all, policy)
	}
	conv := policy.NewConversation(gauge)
	for _, e := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		conv.Append(e)
	}
	return conv, nil
}

// harnessView reads a log as its harness goes on after the last boundary: the system
// prompt, what replaces all that was dropped, what was kept and what came since. What is
// pinned stays too. System messages that the harness injected are no prompt: it writes
// them again, or keeps them.
func harnessView(ctx context.Context, gauge budget.Accountant, all []eventlog.Event, policy projection.Options) (*reduce.Conversation, error) {
	at, boundary := lastBoundary(all)
	conv := policy.NewConversation(gauge)
	left := harness.Left(all[at+1:])
	if at < 0 {
		for _, e := range all {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			appendSeen(conv, e, left)
		}
		return conv, nil
	}
	kept := map[string]bool{}
	for _, id := range all[at].Body.(*eventlog.Compaction).KeptEventIDs {
		kept[id] = true
	}
	prompt, placed := true, false
	for _, e := range all[:at] {
		if err := ctx.Err(); err != nil {
			return nil, err
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
			conv.AppendBoundary(all[at], e.Seq, boundary.Blocks)
			placed = true
		}
		if kept[e.ID] || m.Pinned {
			appendSeen(conv, e, nil)
		} else {
			conv.Skip(e)
		}
	}
	if !placed {
		conv.AppendBoundary(all[at], all[at].Seq, boundary.Blocks)
	}
	conv.AppendBoundaryEvent(all[at])
	for _, e := range all[at+1:] {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if harness.Summarizes(e, all[at]) {
			conv.Skip(e) // the boundary shows it
			continue
		}
		appendSeen(conv, e, left)
	}
	return conv, nil
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
