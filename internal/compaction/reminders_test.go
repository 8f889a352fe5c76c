package compaction_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

func (w *world) remind(id string, r eventlog.Reminder) {
	w.t.Helper()
	if r.Body == "" {
		r.Body = "Mind the " + id + "."
	}
	w.push(eventlog.Event{ID: id, Body: &r})
}

// What a compaction does to reminders before and after its cut.
func TestReminders(t *testing.T) {
	ttl := func(n uint32) *uint32 { return &n }
	cases := map[string]struct {
		early, late []eventlog.Reminder // ids are early-0, …, late-0, …
		want        lifecycle.ReminderReport
	}{
		"none":                        {},
		"unpreserved":                 {early: []eventlog.Reminder{{}}, want: lifecycle.ReminderReport{Compacted: []string{"early-0"}}},
		"preserved":                   {early: []eventlog.Reminder{{PreserveOnCompact: true}}, want: lifecycle.ReminderReport{Preserved: []string{"early-0"}}},
		"behind the cut":              {late: []eventlog.Reminder{{}, {PreserveOnCompact: true}}},
		"expired":                     {early: []eventlog.Reminder{{TTLTurns: ttl(2)}}, want: lifecycle.ReminderReport{Expired: []string{"early-0"}}},
		"expired, preserved":          {early: []eventlog.Reminder{{TTLTurns: ttl(2), PreserveOnCompact: true}}, want: lifecycle.ReminderReport{Expired: []string{"early-0"}}},
		"replaced":                    {early: []eventlog.Reminder{{DedupeKey: "plan"}}, late: []eventlog.Reminder{{DedupeKey: "plan"}}, want: lifecycle.ReminderReport{Deduped: []string{"plan"}}},
		"replaced, and its time over": {early: []eventlog.Reminder{{DedupeKey: "plan", TTLTurns: ttl(2)}}, late: []eventlog.Reminder{{DedupeKey: "plan"}}, want: lifecycle.ReminderReport{Deduped: []string{"plan"}}},
		"replaced before":             {early: []eventlog.Reminder{{DedupeKey: "plan"}, {DedupeKey: "plan"}}, want: lifecycle.ReminderReport{Deduped: []string{"plan"}, Compacted: []string{"plan"}}},
		"counting down":               {late: []eventlog.Reminder{{TTLTurns: ttl(9)}}},
		"counted down":                {early: []eventlog.Reminder{{TTLTurns: ttl(90), PreserveOnCompact: true}, {PreserveOnCompact: true}}, want: lifecycle.ReminderReport{Preserved: []string{"early-0", "early-1"}, Decremented: 1}},
		"preserved, counting":         {early: []eventlog.Reminder{{TTLTurns: ttl(90), PreserveOnCompact: true}}, want: lifecycle.ReminderReport{Preserved: []string{"early-0"}, Decremented: 1}},
		"counting, left with it":      {early: []eventlog.Reminder{{TTLTurns: ttl(90)}}, want: lifecycle.ReminderReport{Compacted: []string{"early-0"}}},
		"named by their keys": {
			early: []eventlog.Reminder{{DedupeKey: "a"}, {DedupeKey: "b", PreserveOnCompact: true}, {DedupeKey: "c", TTLTurns: ttl(1)}},
			want:  lifecycle.ReminderReport{Expired: []string{"c"}, Compacted: []string{"a"}, Preserved: []string{"b"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := start(t, &model{answer: writes})
			told := w.serve(allow)
			w.open(1)
			for i, r := range c.early {
				w.remind(fmt.Sprintf("early-%d", i), r)
			}
			w.turns(1, 10)
			for i, r := range c.late {
				w.remind(fmt.Sprintf("late-%d", i), r)
			}
			out := w.compact(request(reduce.Drop, 1000))
			if out.Outcome != "compacted" {
				t.Fatalf("%+v", out)
			}
			if diff := cmp.Diff(c.want, out.Done.Reminders, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("reported (-want):\n%s", diff)
			}
			<-told.calls
			post := (<-told.calls).Result.Reminders
			if diff := cmp.Diff(c.want, post, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the hook was told (-want):\n%s", diff)
			}
			w.turns(10, 18)
			w.assemble()
			again := w.compact(request(reduce.Drop, 1000))
			if again.Outcome != "compacted" {
				t.Fatalf("%+v", again)
			}
			for _, name := range again.Done.Reminders.Compacted {
				for _, before := range c.want.Compacted {
					if name == before {
						t.Errorf("%s left twice", name)
					}
				}
			}
		})
	}
}

// What becomes of a reminder is reported once, by the first context that shows it, whatever is asked for in
// between, and also after a restart.
func TestWhatBecomesOfAReminderIsReportedOnce(t *testing.T) {
	w := start(t, &model{answer: writes})
	told := func(want ...string) {
		t.Helper()
		w.bus.Publish(lifecycle.Happened("end"))
		var got []string
		for e := range w.events.Events(t.Context()) {
			if e.Type == "end" {
				break
			}
			if strings.HasPrefix(string(e.Type), "reminder_") {
				got = append(got, strings.TrimPrefix(string(e.Type), "reminder_")+" "+e.Attributes["reminder"]+e.Attributes["event_seq"]+e.Attributes["count"])
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("told was %q, want %q", got, want)
		}
	}
	w.open(1)
	w.remind("gone", eventlog.Reminder{TTLTurns: pointer(uint32(0))})
	w.remind("hurry", eventlog.Reminder{TTLTurns: pointer(uint32(2))})
	w.remind("old", eventlog.Reminder{DedupeKey: "plan"})
	early := w.assemble().AsOf
	told("expired gone5")
	w.turns(1, 2)
	w.remind("new", eventlog.Reminder{DedupeKey: "plan"})
	w.assemble()
	told("deduped plan7", "decremented 1")
	w.assemble()
	told()
	w.turns(2, 4)
	w.assemble()
	told("expired hurry6")
	past := settings()
	past.AsOf = &early
	if _, err := w.ask(t.Context(), past); err != nil {
		t.Fatal(err)
	}
	w.engine.Forget("s")
	w.assemble()
	told()
	w.turns(4, 14)
	w.compact(request(reduce.Drop, 1000))
	told("folded plan10")
	w.engine.Forget("s")
	if _, err := w.Undo(t.Context(), "s", 0); err != nil {
		t.Fatal(err)
	}
	w.assemble()
	w.compact(request(reduce.Drop, 1000))
	told()
	if _, err := w.store.Fork(t.Context(), eventlog.ForkRequest{ParentID: "s", At: early, NewID: "fork", Time: noon()}); err != nil {
		t.Fatal(err)
	}
	of := settings()
	of.SessionID = "fork"
	if _, err := w.ask(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	told()
}
