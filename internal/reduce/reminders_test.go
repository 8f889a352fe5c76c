package reduce_test

import (
	"reflect"
	"slices"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// TestFates: a reminder's time is over in the turn that its limit ends with, and a cut takes with it the reminders in
// it, unless they are preserved.
func TestFates(t *testing.T) {
	two := uint32(2)
	all := []reduce.Reminder{
		{Seq: 1, Turn: 1, Reminder: &eventlog.Reminder{TTLTurns: &two}},
		{Seq: 2, Turn: 2, Reminder: &eventlog.Reminder{TTLTurns: &two}},
		{Seq: 3, Turn: 2, Reminder: &eventlog.Reminder{PreserveOnCompact: true}},
		{Seq: 4, Turn: 2, Reminder: &eventlog.Reminder{}},
		{Seq: 5, Turn: 2, Reminder: &eventlog.Reminder{DedupeKey: "k"}},
		{Seq: 6, Turn: 2, Reminder: &eventlog.Reminder{DedupeKey: "k"}},
	}
	const live, expired, deduped, folded = reduce.ReminderLive, reduce.ReminderExpired, reduce.ReminderDeduped, reduce.ReminderFolded
	for collapsed, want := range map[eventlog.Seq][]reduce.ReminderFate{
		0: {expired, live, live, live, deduped, live},
		4: {expired, folded, live, folded, deduped, live},
		6: {expired, folded, live, folded, deduped, folded},
	} {
		if got := reduce.Fates(all, 3, collapsed); !slices.Equal(got, want) {
			t.Errorf("collapsed through %d: %v, want %v", collapsed, got, want)
		}
	}
}

// TestPending has the reminders of a span that hold at its end, whatever came after it.
func TestPending(t *testing.T) {
	s, once := newSession(), uint32(1)
	remind := func(id, key string, ttl *uint32) eventlog.Event {
		return eventlog.Event{ID: id, Body: &eventlog.Reminder{Body: id, DedupeKey: key, TTLTurns: ttl}}
	}
	says := func(id string) eventlog.Event {
		return eventlog.Event{ID: id, Body: &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{eventlog.Text{Text: id}}}}
	}
	asks := func(id string) eventlog.Event {
		return eventlog.Event{ID: id, Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: id}}}}
	}
	if err := s.append(remind("replaced", "k", nil), remind("expired", "", &once), says("1"), asks("2"), remind("newer", "k", nil),
		says("3"), remind("after it", "k", nil), says("4")); err != nil {
		t.Fatal(err)
	}
	for to, want := range map[eventlog.Seq][]string{1: {"replaced"}, 6: {"newer"}, 8: {"after it"}} {
		var got []string
		for _, r := range s.conv.Pending(to) {
			got = append(got, r.Body)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("through event %d: %q, want %q", to, got, want)
		}
	}
}
