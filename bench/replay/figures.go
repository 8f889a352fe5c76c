package main

import (
	"github.com/contextd/contextd/internal/evaluate"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// session is a recorded session with its events as a daemon returns them.
type session struct {
	*evaluate.Session
	protos []*contextdv1.Event
}

// figures are the measures of one or more sessions, and the rules that were broken.
type figures struct {
	evaluate.Figures
	faults   map[string]int
	examples map[string]string // the first example of each fault
}

func newFigures() figures {
	return figures{evaluate.NewFigures(), map[string]int{}, map[string]string{}}
}

// fault counts a broken rule; example is the place.
func (f *figures) fault(what, example string) {
	f.faults[what]++
	if f.examples[what] == "" {
		f.examples[what] = example
	}
}

func (f *figures) add(g figures) {
	f.Add(g.Figures)
	if f.faults == nil {
		f.faults, f.examples = map[string]int{}, map[string]string{}
	}
	for what, n := range g.faults {
		f.faults[what] += n
	}
	for what, example := range g.examples {
		if f.examples[what] == "" {
			f.examples[what] = example
		}
	}
}
