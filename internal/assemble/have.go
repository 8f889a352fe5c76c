package assemble

import (
	"context"
	"fmt"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
)

// maxHeldSearch bounds how many records are looked through for what a caller has.
const maxHeldSearch = 64

// skip takes out of an answer what the caller has already: all of it, if the context
// still begins with it, and else as much as does. Where the daemon does not know what
// the caller has, it sends everything.
func (e *Engine) skip(ctx context.Context, s *session, out *Context, have Have) error {
	n := have.MessageCount
	if n == 0 {
		return nil
	}
	if n <= len(out.Messages) && hashOf(out.Messages[:n]) == have.PrefixHash {
		out.Skipped, out.Messages = n, out.Messages[n:]
		return nil
	}
	held, err := e.held(ctx, s, out.Projection, have)
	if err != nil {
		return err
	}
	if held == nil {
		out.Broken = &Break{Cause: CauseUnknown}
		return nil
	}
	at := common(held, out.Messages)
	out.Broken = &Break{Index: at, Cause: breaker(out.Messages, at)}
	switch {
	case at == len(held):
		out.Broken.Cause = causeInjections
	case held[at].Passing:
		out.Broken.Cause = causeReminders
	}
	out.Skipped, out.Messages = at, out.Messages[at:]
	return nil
}

// held are the messages that a caller has, up to where injections changed them, if a
// recorded projection of the stream begins with them.
func (e *Engine) held(ctx context.Context, s *session, now records.Projection, have Have) ([]Message, error) {
	begins := func(messages []Message) []Message {
		if have.MessageCount <= len(messages) && hashOf(messages[:have.MessageCount]) == have.PrefixHash {
			return messages[:have.MessageCount]
		}
		return nil
	}
	if last, ok := s.last.get(now.Stream()); ok {
		if held := begins(last.messages); held != nil {
			return held, nil
		}
	}
	if now.AsOf == 0 { // nothing was shown at 0
		return nil, nil
	}
	looked := 0
	for r, err := range records.Projections(ctx, e.store, s.id, eventlog.ArtifactQuery{To: now.AsOf, Reverse: true}) {
		if err != nil {
			return nil, err
		}
		injected := r.ContextHash == have.PrefixHash && r.ContextMessages == have.MessageCount
		if !injected && (r.PrefixHash != have.PrefixHash || r.MessageCount != have.MessageCount) {
			if looked++; looked == maxHeldSearch {
				break
			}
			continue
		}
		old, err := e.reencode(ctx, s, r)
		switch {
		case err != nil:
			return nil, err
		case injected && r.PrefixMessages <= len(old.messages):
			return old.messages[:r.PrefixMessages], nil
		default:
			return begins(old.messages), nil
		}
	}
	return nil, nil
}

// Have is what the caller holds of the prefix already.
type Have struct {
	MessageCount int
	PrefixHash   string
}

// Break is where what the caller has is no prefix of the context any more.
type Break struct {
	// Index is the first message that differs.
	Index int
	// Cause is what rewrote it, as in CacheReport.BrokenBy; CauseUnknown if the daemon
	// does not know what the caller has.
	Cause string
}

// CauseUnknown is the cause of a break where no recorded projection begins with what
// the caller says that it has.
const CauseUnknown = "unknown"

// Reason says the cause in a sentence.
func (b *Break) Reason() string {
	switch b.Cause {
	case CauseUnknown:
		return "no recorded projection in this format begins with these messages; everything is sent"
	case causeReminders:
		return fmt.Sprintf("a reminder after message %d was replaced by what was said since", b.Index)
	case causeInjections:
		return fmt.Sprintf("an injection after message %d was replaced by what was said since", b.Index)
	case causeLog:
		return fmt.Sprintf("an event changed message %d, such as a late result", b.Index)
	default:
		return fmt.Sprintf("%s rewrote message %d", b.Cause, b.Index)
	}
}

// The causes of a break that no reducer and no policy made: an event, or reminders and
// injections that came after the newest message.
const (
	causeLog        = "log"
	causeReminders  = "reminders"
	causeInjections = "injections"
)
