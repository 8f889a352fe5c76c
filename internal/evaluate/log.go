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

// Log is a session's log before a step, as a policy has it read. What its messages are as JSON
// and as text is kept from step to step, for all policies that read it alike.
type Log struct {
	*reduce.Conversation
	options projection.Options
	next    int // the first event that is not read
	written map[messageKey]writtenMessage
}

// messageKey identifies a message that is as in the log: how many blocks it has, and where the
// first of them is.
type messageKey struct {
	role   eventlog.Role
	first  eventlog.Place
	blocks int
}

type writtenMessage struct{ json, plain []byte }

// NewLog returns an empty log, which is read as the options say.
func NewLog(gauge budget.Gauge, o projection.Options) *Log {
	return &Log{Conversation: o.NewConversation(gauge), options: o, written: map[messageKey]writtenMessage{}}
}

// advance reads on until so many of the session's events are read.
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

// write writes a message, or takes what was written of it before.
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
