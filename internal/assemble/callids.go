package assemble

import (
	"context"

	"github.com/contextd/contextd/internal/render"
)

// CallID is the id in the log of a call that the providers' formats give another; ok is
// false if the log has no such call. The tokenizer is any that the daemon has.
func (e *Engine) CallID(ctx context.Context, sessionID, tokenizer, rendered string) (id string, ok bool, err error) {
	gauge, err := e.opts.Gauges(tokenizer)
	if err != nil {
		return "", false, err
	}
	s, release, err := e.sessions.acquire(ctx, sessionID)
	if err != nil {
		return "", false, err
	}
	defer release()
	conv, err := s.conversation(ctx, e.store, gauge, nil)
	if err != nil {
		return "", false, err
	}
	groups := conv.Groups()
	for i := len(groups) - 1; i >= 0; i-- {
		for _, c := range groups[i].Calls {
			if render.WireCallID(c.ID, c.Repeat) == rendered {
				return c.ID, true, nil
			}
		}
	}
	return "", false, nil
}
