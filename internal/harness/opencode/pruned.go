package opencode

import (
	"cmp"
	"container/heap"
	"strconv"
	"strings"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// pruned is a result that the harness no longer sends. The part has only the time of the pruning; the event
// is inserted at that time.
type pruned struct {
	when   int64
	n      int // of the result, counted from the first
	callID string
}

// prunings are the results that were pruned, for which no event was appended yet: a heap with the earliest first.
type prunings []pruned

func (p prunings) Len() int      { return len(p) }
func (p prunings) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *prunings) Push(x any)   { *p = append(*p, x.(pruned)) }
func (p prunings) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(p[i].when, p[j].when), cmp.Compare(p[i].n, p[j].n)) < 0
}

func (p *prunings) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

// prunedType is the type of the events that record which results were pruned.
const (
	prunedKind = "pruned-results"
	prunedType = Name + "." + prunedKind
)

// prune appends an event for every pruning up to a time in milliseconds, or for all that remain if it is 0. Results
// that were pruned together share an event.
func (r *reader) prune(until int64) {
	for len(r.pruned) > 0 && (until == 0 || r.pruned[0].when <= until) {
		when := r.pruned[0].when
		var quoted []string
		for len(r.pruned) > 0 && r.pruned[0].when == when {
			quoted = append(quoted, transcript.Quote(heap.Pop(&r.pruned).(pruned).callID))
		}
		ms := strconv.FormatInt(when, 10)
		r.session.Custom(transcript.Entry{
			ID:     "pruned-" + ms,
			Time:   at(when),
			Native: []byte(`{"time":` + ms + `,"call_ids":[` + strings.Join(quoted, ",") + `]}`),
		}, prunedKind)
	}
}
