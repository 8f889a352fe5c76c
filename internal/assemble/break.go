package assemble

import "fmt"

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
