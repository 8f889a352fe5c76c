package log

import (
	"context"
	"iter"
)

// RunsReader is a Reader that reads runs that are apart together.
type RunsReader interface {
	// ReadRuns yields what Read yields of each of some runs of one session, the first error last.
	ReadRuns(ctx context.Context, id string, runs Ranges) iter.Seq2[Event, error]
}

// ReadRuns yields the events of runs of a log that end at its head at most.
func ReadRuns(ctx context.Context, log Reader, id string, runs Ranges) iter.Seq2[Event, error] {
	if together, ok := log.(RunsReader); ok {
		return together.ReadRuns(ctx, id, runs)
	}
	return func(yield func(Event, error) bool) {
		for _, r := range runs {
			if r.To < r.From {
				continue // to Read it would be all
			}
			for e, err := range log.Read(ctx, id, r.From, r.To) {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}
