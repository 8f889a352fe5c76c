package evaluate

import (
	"context"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
)

// Log is a session's log before a step, as a policy reads it. The JSON and the text of its messages are cached from
// step to step, for all policies that read the log in the same way.
type Log struct {
	*reduce.Conversation
	options projection.Options
	next    int // the first event that is not read
	written map[messageKey]writtenMessage
}

// messageKey identifies a message that is shown as in the log, by its role, its first block and its number
// of blocks.
type messageKey struct {
	role   eventlog.Role
	first  eventlog.Place
	blocks int
}

type writtenMessage struct{ json, plain []byte }

// NewLog returns an empty log that is read as the options say.
func NewLog(gauge budget.Gauge, o projection.Options) *Log {
	return &Log{Conversation: o.NewConversation(gauge), options: o, written: map[messageKey]writtenMessage{}}
}

// advance reads the session's events up to the first until of them.
func (l *Log) advance(ctx context.Context, events []eventlog.Event, until int) error {
	fresh := events[l.next:until]
	l.next = until
	on, err := assemble.Extend(ctx, l.Conversation, fresh, l.options)
	if on || err != nil {
		return err
	}
	clear(l.written)
	l.Conversation, err = assemble.ConversationOf(ctx, l.Gauge(), events[:until], l.options)
	return err
}

// write renders a message; an unchanged one comes from the cache.
func (l *Log) write(m render.Message, first eventlog.Place, unchanged bool) writtenMessage {
	key := messageKey{m.Role, first, len(m.Blocks)}
	if unchanged {
		if w, ok := l.written[key]; ok {
			return w
		}
	}
	w := writtenMessage{json: append(render.AppendJSON(nil, m), '\n')}
	for _, block := range m.Blocks {
		w.plain = append(append(w.plain, Plain(block)...), 0)
	}
	if unchanged {
		l.written[key] = w
	}
	return w
}
