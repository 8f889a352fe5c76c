package demo

import (
	"fmt"
	"strings"
	"testing"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func TestSplitCutsAtModelCalls(t *testing.T) {
	for notation, want := range map[string]string{
		"u a":               "1 | rest 1",
		"u a:1 t:1 a":       "1 2 | rest 1",
		"u a:1 t:1":         "1 2 | rest 0",
		"u":                 "1 | rest 0",
		"a":                 " | rest 1",
		"u a a:1 t:1 u a u": "1 4 2 | rest 0",
		"u a:1 t:1 u":       "1 3 | rest 0",
	} {
		var events []*contextdv1.Event
		for _, m := range talk(notation) {
			events = append(events, &contextdv1.Event{Kind: &contextdv1.Event_Message{Message: m.GetMessage()}})
		}
		steps, rest := split(events)
		var sizes []string
		for _, s := range steps {
			sizes = append(sizes, fmt.Sprint(len(s.events)))
		}
		if got := fmt.Sprintf("%s | rest %d", strings.Join(sizes, " "), len(rest)); got != want {
			t.Errorf("%s: got %s, want %s", notation, got, want)
		}
	}
}

func TestEventsThatAreNoMessagesBelongToTheNextStep(t *testing.T) {
	reminder := &contextdv1.Event{Kind: &contextdv1.Event_Reminder{Reminder: &contextdv1.Reminder{Body: "x"}}}
	message := func(role contextdv1.Role) *contextdv1.Event {
		return &contextdv1.Event{Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{Role: role}}}
	}
	steps, rest := split([]*contextdv1.Event{
		message(contextdv1.Role_ROLE_USER), reminder, message(contextdv1.Role_ROLE_ASSISTANT), reminder,
	})
	if len(steps) != 1 || len(steps[0].events) != 2 || len(rest) != 2 {
		t.Errorf("got %d steps and %d remaining", len(steps), len(rest))
	}
}

func TestCompareMeasuresTheCommonPrefix(t *testing.T) {
	lines := func(text string) []*contextdv1.RenderedMessage {
		var out []*contextdv1.RenderedMessage
		for line := range strings.SplitSeq(text, "|") {
			m := &contextdv1.RenderedMessage{Json: []byte(strings.TrimPrefix(line, "!"))}
			if strings.HasPrefix(line, "!") {
				m.Origin = contextdv1.Origin_ORIGIN_REMINDER
			}
			out = append(out, m)
		}
		return out
	}
	for _, tt := range []struct {
		before, now                string
		bytes, common, stable, was int
	}{
		{"ab|cd", "ab|cd", 6, 6, 2, 2},
		{"ab|cd", "ab|cd|ef", 9, 6, 2, 2},
		{"ab|cd", "ab|cx|ef", 9, 4, 1, 2},
		{"ab|cd", "ab", 3, 3, 1, 2},
		{"ab|cd", "ab|cde", 7, 5, 1, 2},
		{"ab|cd|!r", "ab|cd|ef", 9, 6, 2, 2},
		{"ab|cd", "xb|cd", 6, 0, 0, 2},
	} {
		r := received{messages: lines(tt.now)}
		r.compare(lines(tt.before), 0)
		if r.bytes != tt.bytes || r.common != tt.common || r.stable != tt.stable || r.before != tt.was {
			t.Errorf("%s after %s: %d bytes, %d common, %d of %d stable", tt.now, tt.before, r.bytes, r.common, r.stable, r.before)
		}
		if all := strings.ReplaceAll(strings.ReplaceAll(tt.now, "!", ""), "|", "\n") + "\n"; len(all) != r.bytes {
			t.Errorf("%s has %d bytes as lines, not %d", tt.now, len(all), r.bytes)
		}
	}
}

// TestJoined: a message that a newer event became part of was not rewritten by the daemon.
func TestJoined(t *testing.T) {
	said := func(text string, seqs ...uint64) *contextdv1.RenderedMessage {
		return &contextdv1.RenderedMessage{Json: []byte(text), SourceSeqs: seqs}
	}
	before := []*contextdv1.RenderedMessage{said("ab", 1), said("cd", 2)}
	for name, tc := range map[string]struct {
		now  []*contextdv1.RenderedMessage
		want bool
	}{
		"the same":               {[]*contextdv1.RenderedMessage{said("ab", 1), said("cd", 2), said("ef", 3)}, false},
		"joined":                 {[]*contextdv1.RenderedMessage{said("abef", 1, 3), said("cd", 2)}, true},
		"put before":             {[]*contextdv1.RenderedMessage{said("ab", 1), said("ef", 3), said("cd", 2)}, true},
		"rewritten":              {[]*contextdv1.RenderedMessage{said("xb", 1), said("cd", 2), said("ef", 3)}, false},
		"rewritten before joins": {[]*contextdv1.RenderedMessage{said("xb", 1), said("cdef", 2, 3)}, false},
	} {
		r := received{messages: tc.now}
		if r.compare(before, 2); r.joined != tc.want {
			t.Errorf("%s: %t", name, r.joined)
		}
	}
}
