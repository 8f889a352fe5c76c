package opencode

import (
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// reverted is the value of labelFailed on messages that the user took back.
const reverted = "reverted"

// revert is the point to which the user took a session back. The next prompt removes what is after it.
type revert struct {
	Message transcript.Word `json:"messageID"`
	Part    transcript.Word `json:"partID"` // the parts of the message before it stay
}

// takeBack labels the messages that the user took back. Of a message that was taken back in part, all stays.
func (r *reader) takeBack() {
	from, found := r.begins[string(r.revert.Message)]
	if !found {
		return
	}
	if r.revert.Part != "" {
		from = r.ends[string(r.revert.Message)]
	}
	for i, e := range r.session.Since(from) {
		if _, ok := e.Body.(*eventlog.Message); ok && e.Labels[labelFailed] == "" {
			r.session.Annotate(from+i, labelFailed, reverted)
		}
	}
}
