package log

import (
	"context"
	"iter"
)

// RunsReader is implemented by a Reader that can read several runs of a log in one request to its medium.
type RunsReader interface {
	// ReadRuns yields the events of the runs in order, as one Read for each run would, and stops after the first
	// error.
	ReadRuns(ctx context.Context, id string, runs Ranges) iter.Seq2[Event, error]
}

// ReadRuns yields the events of some runs of a log, in one request if log is a RunsReader. No run may end after the
// head.
func ReadRuns(ctx context.Context, log Reader, id string, runs Ranges) iter.Seq2[Event, error] {
	if together, ok := log.(RunsReader); ok {
		return together.ReadRuns(ctx, id, runs)
	}
	return func(yield func(Event, error) bool) {
		for _, r := range runs {
			if r.To < r.From {
				continue // Read would take To 0 for the head
			}
			for e, err := range log.Read(ctx, id, r.From, r.To) {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}
