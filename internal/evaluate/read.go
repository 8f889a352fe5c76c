package evaluate

import (
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
)

// SessionOf makes a Session of a transcript that was read from a harness's file. The error is that of
// eventlog.Head.Admit.
func SessionOf(file, harnessName string, part harness.Session, gauge budget.Gauge) (*Session, error) {
	_, admitted, err := eventlog.Head{}.Admit(part.Events)
	if err != nil {
		return nil, err
	}
	for i := range admitted {
		admitted[i].Tokens = gauge.CountEvent(admitted[i])
	}
	s := NewSession(file, harnessName, admitted, gauge)
	s.Suffix = part.Suffix
	return s, nil
}
