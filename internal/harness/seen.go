package harness

import (
	"github.com/contextd/contextd/internal/harness/opencode"
	"github.com/contextd/contextd/internal/harness/pi"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Seen reports whether the harness that wrote a message still shows it to a model. pi and
// OpenCode keep replies that failed or were aborted, and leave them out from then on.
func Seen(e eventlog.Event) bool {
	return e.Labels[pi.LabelStopReason] == "" && e.Labels[opencode.LabelFailed] == ""
}
