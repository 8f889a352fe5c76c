package server

import (
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
)

// standingLog has one message, then n compactions of a caller's, then one that undoes those from an event on; 0 undoes
// none.
func standingLog(n int, undoes eventlog.Seq) []eventlog.Event {
	events := make([]eventlog.Event, 0, n+2)
	events = append(events, eventlog.Event{Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: "Go."}}}})
	decide := func(d eventlog.CompactionDecision) {
		events = append(events, eventlog.Event{Body: &eventlog.Compaction{Decision: &d}})
	}
	for range n {
		decide(eventlog.CompactionDecision{Through: 1, DigestTokens: 1})
	}
	if undoes > 0 {
		decide(eventlog.CompactionDecision{Undoes: undoes})
	}
	return events
}

// TestStanding: compactions that were undone, and what undid them, are omitted.
func TestStanding(t *testing.T) {
	for undoes, want := range map[eventlog.Seq]int{0: 11, 2: 1, 3: 2, 7: 6, 11: 10} {
		if got := standing(standingLog(10, undoes)); len(got) != want {
			t.Errorf("%d events stay if those from %d on are undone, not %d", len(got), undoes, want)
		}
	}
}

// TestManyStanding: the compactions in force are not searched from the beginning for each, which takes most of a minute
// here.
func TestManyStanding(t *testing.T) {
	const n = 300_000
	if got := standing(standingLog(n, n+1)); len(got) != n {
		t.Errorf("%d events stay", len(got))
	}
}
