package reduce_test

import (
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// TestLivePlan: the newest standing plan counts, whatever kind of event the runtime puts it in. What a human or the
// agent says does not, whatever its labels.
func TestLivePlan(t *testing.T) {
	says := func(role eventlog.Role, injected, text string) eventlog.Event {
		e := message(role, eventlog.Text{Text: text})
		e.Labels = map[string]string{eventlog.LabelStanding: eventlog.StandingPlan, eventlog.LabelInjected: injected}
		return e
	}
	standing := map[string]string{eventlog.LabelStanding: eventlog.StandingPlan}
	for name, c := range map[string]struct {
		event eventlog.Event
		want  reduce.Live
	}{
		"a user's message":   {says(eventlog.RoleUser, "true", "new"), reduce.Live{Seq: 2, Text: "new"}},
		"a system message":   {says(eventlog.RoleSystem, "true", "new"), reduce.Live{Seq: 2, Text: "new"}},
		"a human's":          {says(eventlog.RoleUser, "", "new"), reduce.Live{Seq: 1, Text: "old"}},
		"the agent's":        {says(eventlog.RoleAssistant, "true", "new"), reduce.Live{Seq: 1, Text: "old"}},
		"a reminder":         {eventlog.Event{Labels: standing, Body: &eventlog.Reminder{Body: "new"}}, reduce.Live{Seq: 2, Text: "new"}},
		"an event of others": {eventlog.Event{Labels: standing, Body: &eventlog.Custom{Type: "plan", JSON: `"new"`}}, reduce.Live{Seq: 2, Text: `"new"`}},
	} {
		s := newSession()
		if err := s.append(says(eventlog.RoleUser, "true", "old"), c.event); err != nil {
			t.Fatal(err)
		}
		if got := s.conv.Live(eventlog.StandingPlan); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if got := s.conv.Live(eventlog.StandingScratchpad); got != (reduce.Live{}) {
			t.Errorf("%s: a scratchpad %+v", name, got)
		}
	}
}
