package transcript

import (
	"reflect"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
)

// TestEnvelopesOfEarlierBuilds: differences in labels and custom events are found, and envelopes replace
// them.
func TestEnvelopesOfEarlierBuilds(t *testing.T) {
	say := &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: "Hi."}}}
	old := Session{
		Labels: map[string]string{"h.session": "{s}"},
		Events: []eventlog.Event{
			{ID: "a", Labels: map[string]string{"h.entry": `{"set":`, "h.entry.2": `{"x"`, "h.entry.3": ":1}}", "o.entry": "{}"}, Body: say},
			{ID: "b", Body: say},
			{ID: "b/entry", Body: &eventlog.Custom{Type: "harness.h.entry", JSON: `{"event":"b","difference":{"del":["y"]}}`}},
		},
	}
	got := EnvelopesOf("h", old)
	if got.Session != "{s}" || !reflect.DeepEqual(got.Entries, map[string]string{"a": `{"set":{"x":1}}`, "b": `{"del":["y"]}`}) {
		t.Errorf("found %+v", got)
	}
	old.Events = append(old.Events, eventlog.Event{ID: "session-entry", Body: &eventlog.Custom{Type: "harness.h.session-entry", JSON: "{t}"}})
	if got := EnvelopesOf("h", old); got.Session != "{t}" {
		t.Errorf("the session's is %s", got.Session)
	}
	old.Envelopes = []Envelope{
		{Harness: "h", Difference: "{u}"}, {Harness: "h", Event: "a", Difference: "{}"}, {Harness: "h", Event: "a", Part: "p", Difference: "{p}"},
		{Harness: "o", Event: "b", Difference: "{}"},
	}
	got = EnvelopesOf("h", old)
	if got.Session != "{u}" || !reflect.DeepEqual(got.Entries, map[string]string{"a": "{}", "a/p": "{p}", "b": `{"del":["y"]}`}) {
		t.Errorf("found %+v", got)
	}
}
