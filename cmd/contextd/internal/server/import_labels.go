package server

import (
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
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

// labelled adds labels to an event of a transcript: that it has no time, and so gets one from the log; and that its
// reasoning is bound to the harness's prompt, which the transcript does not have.
func labelled(e eventlog.Event) eventlog.Event {
	more := map[string]string{}
	if e.Time.IsZero() {
		more[labelUntimed] = "true"
	}
	if m, ok := e.Body.(*eventlog.Message); ok && slices.ContainsFunc(m.Blocks, func(b eventlog.Block) bool { return provider.Bound(b, m.Model) }) {
		more[eventlog.LabelOwnPrompt] = "true"
	}
	if len(more) == 0 || len(e.Labels)+len(more) > transcript.MaxLabels {
		return e
	}
	maps.Copy(more, e.Labels)
	e.Labels = more
	return e
}

// unlabelled undoes labelled.
func unlabelled(e eventlog.Event) eventlog.Event {
	if e.Labels[labelUntimed] == "true" {
		e.Time = time.Time{}
	}
	e.Labels = maps.Clone(e.Labels)
	delete(e.Labels, labelUntimed)
	delete(e.Labels, eventlog.LabelOwnPrompt)
	return e
}
