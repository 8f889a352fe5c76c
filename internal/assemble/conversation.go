package assemble

import (
	"context"
	"fmt"
	"slices"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
)

// shown reads the log up to asOf (nil is the head) as the policy says: whole, or under harness_view as the
// harness goes on after its last compaction. The error is a *NothingShownError if the log has messages and
// the harness shows none of them.
func (s *session) shown(ctx context.Context, store Store, gauge budget.Gauge, asOf *eventlog.Seq, policy projection.Options, fingerprint string) (*reduce.Conversation, error) {
	var conv *reduce.Conversation
	var err error
	if policy.Name == projection.HarnessView {
		conv, err = s.harnessConversation(ctx, store, gauge, asOf, policy)
	} else {
		conv, err = s.conversation(ctx, store, gauge, asOf, policy, fingerprint)
	}
	if err != nil {
		return nil, err
	}
	if len(conv.Groups()) == 0 && len(conv.Reminders()) == 0 && conv.Tokens() > 0 {
		return nil, &NothingShownError{SessionID: s.id, Tokens: conv.Tokens()}
	}
	return conv, nil
}

// conversation returns the log up to asOf (nil is the head) as groups. The conversation that the session
// keeps only grows: an earlier asOf gets a separate one. With a fingerprint, the result may begin at a
// checkpoint and lack the groups that the digest replaces.
func (s *session) conversation(ctx context.Context, store Store, gauge budget.Gauge, asOf *eventlog.Seq, policy projection.Options, fingerprint string) (*reduce.Conversation, error) {
	to, err := s.upTo(ctx, store, asOf)
	if err != nil {
		return nil, err
	}
	key := conversationKey(gauge, policy)
	begin := func() (*reduce.Conversation, error) {
		conv, err := s.begun(ctx, store, gauge, to, policy, fingerprint)
		if conv == nil && err == nil {
			conv = policy.NewConversation(gauge)
		}
		return conv, err
	}
	conv, ok := s.convs.get(key)
	if !ok || conv.Incomplete() || !conv.Whole() && (fingerprint == "" || s.whole) {
		s.makeRoom()
		if conv, err = begin(); err != nil {
			return nil, err
		}
		s.convs.put(key, conv, 0)
		s.observed.keep(0) // their views refer to the conversation that was replaced
		s.ahead.keep(0)
	}
	if to < conv.Head() {
		if conv, err = begin(); err != nil {
			return nil, err
		}
	}
	if err := s.reserve(ctx, conv.Head(), to); err != nil {
		return nil, err
	}
	if err := s.computing.Begin(ctx); err != nil {
		return nil, err
	}
	if to == conv.Head() {
		return conv, nil
	}
	for event, err := range store.Read(ctx, s.id, conv.Head()+1, to) {
		if err != nil {
			return nil, err
		}
		conv.Append(event)
	}
	if conv.Incomplete() { // a new event belongs to a group that was not read
		return s.conversation(ctx, store, gauge, asOf, policy, "")
	}
	return conv, nil
}

// upTo returns asOf, or the log's head if that is nil.
func (s *session) upTo(ctx context.Context, store Store, asOf *eventlog.Seq) (eventlog.Seq, error) {
	info, err := s.look(ctx, store)
	if err != nil {
		return 0, err
	}
	if asOf == nil {
		return info.Head, nil
	}
	if *asOf > info.Head {
		return 0, &eventlog.NotFoundError{Kind: "event", Name: fmt.Sprint(*asOf), There: eventlog.EventsThere(info.Head)}
	}
	return *asOf, nil
}

// atHand reports whether the log is in memory, or so little is missing that reading it needs no
// reservation.
func (s *session) atHand(ctx context.Context, store Store, gauge budget.Gauge, policy projection.Options) (bool, error) {
	to, err := s.upTo(ctx, store, nil)
	if err != nil {
		return false, err
	}
	conv, ok := s.convs.get(conversationKey(gauge, policy))
	return ok && s.workFor(conv.Head(), to) < leastWork, nil
}

// conversationKey returns the cache key of a conversation: it names the gauge and how the policy reads the log.
func conversationKey(gauge budget.Gauge, policy projection.Options) string {
	key := gauge.Name()
	if policy.Name == projection.HarnessView {
		key += "/" + projection.HarnessView
	}
	if policy.Scrub {
		key += "/scrub"
	}
	return key
}

// ConversationOf makes the conversation of a whole log, read as the policy says. The events must have been
// admitted.
func ConversationOf(ctx context.Context, gauge budget.Gauge, all []eventlog.Event, policy projection.Options) (*reduce.Conversation, error) {
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

// Extend appends new events to a conversation, as the policy reads them. It returns false, and changes nothing, if
// the new events change which earlier ones are shown: then the whole log must be read again.
func Extend(ctx context.Context, conv *reduce.Conversation, fresh []eventlog.Event, policy projection.Options) (bool, error) {
	whole := policy.Name != projection.HarnessView
	if !whole {
		if at, _ := lastBoundary(fresh); at >= 0 || slices.ContainsFunc(fresh, harness.Follows) {
			return false, nil
		}
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
