package opencode

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// pruned is a result that the harness left out of later prompts. The part says
// only when; the event goes where that time is.
type pruned struct {
	when   int64
	callID string
}

// prune appends an event for every pruning up to the time, or for all that are
// left if it is 0. Results pruned together share one event.
// prunedType is the type of the events that say what was pruned.
const (
	prunedKind = "pruned-results"
	prunedType = Name + "." + prunedKind
)

func (r *reader) prune(until int64) {
	slices.SortStableFunc(r.pruned, func(a, b pruned) int { return cmp.Compare(a.when, b.when) })
	for len(r.pruned) > 0 && (until == 0 || r.pruned[0].when <= until) {
		when := r.pruned[0].when
		var quoted []string
		for len(r.pruned) > 0 && r.pruned[0].when == when {
			quoted = append(quoted, transcript.Quote(r.pruned[0].callID))
			r.pruned = r.pruned[1:]
		}
		ms := strconv.FormatInt(when, 10)
		r.session.Custom(transcript.Entry{
			ID:     "pruned-" + ms,
			Time:   at(when),
			Native: []byte(`{"time":` + ms + `,"call_ids":[` + strings.Join(quoted, ",") + `]}`),
		}, prunedKind)
	}
}
