package reduce

import (
	"iter"
	"maps"

	eventlog "github.com/contextd/contextd/internal/log"
)

// places is an immutable set that shares memory with the sets from which it was made. This is needed because each of
// thousands of compactions has the masked results of all compactions before it. Its parts are disjoint, and each is
// less than half as large as the one before it, so that there are few parts.
type places []map[eventlog.Place]bool

func (p places) has(at eventlog.Place) bool {
	for _, part := range p {
		if part[at] {
			return true
		}
	}
	return false
}

func (p places) all() iter.Seq[eventlog.Place] {
	return func(yield func(eventlog.Place) bool) {
		for _, part := range p {
			for at := range part {
				if !yield(at) {
					return
				}
			}
		}
	}
}

// with returns the set with more places in it.
func (p places) with(more []eventlog.Place) places {
	put := map[eventlog.Place]bool{}
	for _, at := range more {
		if !p.has(at) {
			put[at] = true
		}
	}
	if len(put) == 0 {
		return p
	}
	n := len(p)
	for ; n > 0 && len(p[n-1]) <= 2*len(put); n-- {
		maps.Copy(put, p[n-1])
	}
	return append(p[:n:n], put)
}
