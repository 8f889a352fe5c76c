package evaluate

import (
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
)

// SessionsOf are the sessions of a transcript that was read from a file. The error is that of
// eventlog.Head.Admit.
func SessionsOf(file string, t harness.Transcript, gauge budget.Accountant) ([]*Session, error) {
	var out []*Session
	for _, part := range t.Sessions {
		_, admitted, err := eventlog.Head{}.Admit(part.Events)
		if err != nil {
			return nil, err
		}
		for i := range admitted {
			admitted[i].Tokens = gauge.CountEvent(admitted[i])
		}
		s := NewSession(file, t.Harness, admitted, gauge)
		s.Suffix = part.Suffix
		out = append(out, s)
	}
	return out, nil
}
