package reduce_test

import (
	"reflect"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
)

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
