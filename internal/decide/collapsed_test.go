package decide_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// The report of a cut says how it was made, whether or not the caller said it, what it dropped and which
// summary it quotes.
func TestCollapsedReportsTheCut(t *testing.T) {
	for _, strategy := range []reduce.Strategy{reduce.Mask, reduce.Drop, reduce.Summarize} {
		t.Run(string(strategy), func(t *testing.T) {
			in := inputs(t, 100_000, events(t, turns(60)...))
			before := run(t, &in)
			in.Caller = reduce.Ask{Goal: 2_000, KeepLastTurns: 1, Strategy: strategy}
			plan, after, _ := compact(t, in, "")
			in.Caller = reduce.Ask{}
			if plan.Summary != nil {
				in.Summaries = append(in.Summaries, *written(plan.Summary))
			}
			got := in.Collapsed(before, after)
			dropped := before.Messages() - after.Messages()
			if strategy == reduce.Mask {
				dropped = 0
			} else {
				dropped++ // the digest is a message
			}
			if got.Strategy != strategy || got.Archived != dropped || (got.Summary != nil) != (strategy == reduce.Summarize) {
				t.Errorf("%s, %d archived instead of %d, summary %v", got.Strategy, got.Archived, dropped, got.Summary)
			}
			if got.Before != (decide.Size{Messages: before.Messages(), Tokens: before.Tokens()}) || got.After != (decide.Size{Messages: after.Messages(), Tokens: after.Tokens()}) {
				t.Errorf("%v before, %v after", got.Before, got.After)
			}
		})
	}
}

// A compaction reports the reminders that it was the first to end, and those that outlived it.
func TestCollapsedReportsReminders(t *testing.T) {
	soon, late := uint32(2), uint32(500)
	var log []eventlog.Event
	for i, e := range events(t, turns(60)...) {
		if log = append(log, e); i != 3 {
			continue
		}
		for id, r := range map[string]eventlog.Reminder{
			"brief": {TTLTurns: &soon}, "long": {TTLTurns: &late, PreserveOnCompact: true}, "lasting": {PreserveOnCompact: true}, "passing": {},
		} {
			r.Body, r.DedupeKey = "Mind the time.", id
			log = append(log, eventlog.Event{ID: id, Body: &r})
		}
	}
	in := inputs(t, 100_000, log)
	before := run(t, &in)
	in.Caller = reduce.Ask{Goal: 2_000, KeepLastTurns: 1, Strategy: reduce.Drop}
	_, after, _ := compact(t, in, "")
	got := in.Collapsed(before, after).Reminders
	slices.Sort(got.Preserved)
	want := lifecycle.ReminderReport{Expired: []string{"brief"}, Compacted: []string{"passing"}, Preserved: []string{"lasting", "long"}, Decremented: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	want.Expired, want.Compacted = nil, nil
	again := in.Collapsed(after, after).Reminders
	slices.Sort(again.Preserved)
	if diff := cmp.Diff(want, again); diff != "" {
		t.Errorf("a second compaction: %s", diff)
	}
}
