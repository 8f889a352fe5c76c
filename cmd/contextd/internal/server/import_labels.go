package server

import (
	"fmt"
	"maps"
	"time"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Labels that an import adds to the harness's own. An export needs them to restore the transcript.
const (
	// labelParentSession is the id of the session with which this subagent's session was imported.
	labelParentSession = "harness.parent_session"
	// labelParentCall is the id of the call in that session which started the subagent.
	labelParentCall = "harness.parent_call_id"
	// labelUntimed is "true" on an event that had no time in the transcript: its time in the log is that of the
	// import.
	labelUntimed = "harness.untimed"
)

// partLabels returns the labels of a session that is imported into id. warn is called for each that is
// omitted.
func partLabels(id string, part harness.Session, warn func(string)) map[string]string {
	if part.Suffix == "" {
		return part.Labels
	}
	labels := maps.Clone(part.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[labelParentSession] = id
	if call := part.ParentCallID; call != "" {
		if utf8.RuneCountInString(call) > transcript.MaxLabelValue {
			warn(fmt.Sprintf("the call that began session %s has an id that is too long for a label; they are not linked", partID(id, part.Suffix)))
		} else {
			labels[labelParentCall] = call
		}
	}
	return labels
}

// untimed marks an event that has no time. The log gives it one.
func untimed(e eventlog.Event) eventlog.Event {
	if !e.Time.IsZero() || len(e.Labels) >= transcript.MaxLabels {
		return e
	}
	labels := make(map[string]string, len(e.Labels)+1)
	maps.Copy(labels, e.Labels)
	labels[labelUntimed] = "true"
	e.Labels = labels
	return e
}

// timed undoes untimed.
func timed(e eventlog.Event) eventlog.Event {
	if e.Labels[labelUntimed] != "true" {
		return e
	}
	e.Labels = maps.Clone(e.Labels)
	delete(e.Labels, labelUntimed)
	e.Time = time.Time{}
	return e
}
