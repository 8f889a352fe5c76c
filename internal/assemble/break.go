package assemble

import "fmt"

// Have is the prefix of the context that the caller says it has.
type Have struct {
	MessageCount int
	PrefixHash   string
}

// Break says at which message the caller's messages stop being a prefix of the context, and why.
type Break struct {
	// Index is the first message that differs.
	Index int
	// Cause is what rewrote that message, as in CacheReport.BrokenBy; CauseUnknown if no record explains what the
	// caller has.
	Cause string
}

// CauseUnknown is the cause of a break if no recorded projection begins with the messages that the caller says it
// has.
const CauseUnknown = "unknown"

// Reason returns the cause as a sentence.
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

// The causes of a break that neither a reducer nor a policy made: an event of the log, or reminders and injections
// that were after the newest message and are gone.
const (
	causeLog        = "log"
	causeReminders  = "reminders"
	causeInjections = "injections"
)
