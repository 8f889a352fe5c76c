package harness

import (
	"github.com/contextd/contextd/internal/harness/claude"
	"github.com/contextd/contextd/internal/harness/opencode"
	"github.com/contextd/contextd/internal/harness/pi"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Seen reports whether the harness that wrote a message still shows it to a model. pi and
// OpenCode keep replies that failed or were aborted, and leave them out from then on.
func Seen(e eventlog.Event) bool {
	return e.Labels[pi.LabelStopReason] == "" && e.Labels[opencode.LabelFailed] == ""
}

// Left are the messages among the events, by id, that their harness shows to no model any
// more because it went on elsewhere: branches of Claude Code that were abandoned.
func Left(events []eventlog.Event) map[string]bool { return claude.Left(events) }

// Follows reports whether an event may change which messages before it are shown, its own apart:
// which are Left, or that a boundary shows what it says.
func Follows(e eventlog.Event) bool { return claude.Follows(e) || e.Labels[labelSummary] == "true" }
