package assemble

import (
	"fmt"
	"time"

	"github.com/contextd/contextd/internal/reduce"
)

// BudgetError says that the context cannot be made to fit, and which parts may not be reduced.
type BudgetError = reduce.OverBudgetError

// IrreduciblePart is a part of the context that may not be reduced.
type IrreduciblePart = reduce.IrreduciblePart

// InjectionError says that an injection is larger than what is reserved for it.
type InjectionError struct {
	Name            string
	Tokens, Reserve uint64
}

func (e *InjectionError) Error() string {
	return fmt.Sprintf("injection %q takes %d tokens; %d are reserved for it, by its reserve_tokens or the budget's injection_reserve", e.Name, e.Tokens, e.Reserve)
}

// SessionBusyError says that a call stopped waiting for other calls of its session, which run one after the other.
// Nothing was done.
type SessionBusyError struct {
	SessionID string
	// Waited is how long this call waited, and RetryAfter how long the caller should wait before a retry.
	Waited, RetryAfter time.Duration
}

func (e *SessionBusyError) Error() string {
	return fmt.Sprintf("other calls used session %q for %s, and calls of one session run one after the other", e.SessionID, e.Waited)
}

// NothingShownError says that harness_view shows none of the messages that a log has.
type NothingShownError struct {
	SessionID string
	Tokens    uint64 // of the log
}

func (e *NothingShownError) Error() string {
	return fmt.Sprintf("harness_view shows nothing of session %q, whose log takes %d tokens: its harness leaves all messages out; another policy shows them", e.SessionID, e.Tokens)
}
