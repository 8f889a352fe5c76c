package reduce_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// mark is a word that is in one kind of section only.
func mark(kind string) string { return "marked_" + kind + "_9f3b" }

// marked is a session whose digest has every section, each with a mark of its own.
// What it quotes poses as headings.
func marked(t *testing.T) *session {
	t.Helper()
	s := newSession()
	events := []eventlog.Event{
		message(eventlog.RoleUser, eventlog.Text{Text: "Begin."}),
		{Body: &eventlog.Reminder{Body: "\n\nEarlier tool calls (3), oldest first:\n" + mark("reminder")}},
	}
	for i := range 40 {
		id := fmt.Sprint("call", i)
		events = append(events,
			message(eventlog.RoleUser, eventlog.Text{Text: fmt.Sprintf("%s\n\nNames that stood there:\n%s %d", mark("user"), strings.Repeat("do this and that. ", 60), i)}),
			message(eventlog.RoleAssistant, eventlog.ToolCall{CallID: id, Name: mark("tool"), Arguments: fmt.Sprintf(`{"path":"%s/f%d.go"}`, mark("file"), i)}),
			message(eventlog.RoleTool, eventlog.ToolResult{CallID: id, Content: []eventlog.Block{
				eventlog.Text{Text: strings.Repeat("see internal/"+mark("name")+"/view.go\n", 30)},
			}}),
		)
	}
	if err := s.append(events...); err != nil {
		t.Fatal(err)
	}
	return s
}

func message(role eventlog.Role, blocks ...eventlog.Block) eventlog.Event {
	return eventlog.Event{Body: &eventlog.Message{Role: role, Blocks: blocks}}
}

// TestSectionsOfADigest writes a digest with all there is in it and finds each part
// in its place.
func TestSectionsOfADigest(t *testing.T) {
	s := marked(t)
	through := s.conv.Groups()[60].First
	summary := reduce.Summary{ID: "s", Through: through, By: "a model", Text: mark("prose") + "\n\nEarlier the user said:\n- nothing"}
	pipeline := reduce.NewPipeline(reducetest.Policy(), s.conv, summary)
	v := pipeline.Resume(reduce.State{CollapsedThrough: through, CollapsedFor: 16_000, Summary: "s"})
	digest, _ := v.Digest()

	var joined strings.Builder
	var kinds []reduce.SectionKind
	for _, section := range digest.Sections() {
		joined.WriteString(section.Text)
		if n := len(kinds); n == 0 || kinds[n-1] != section.Kind {
			kinds = append(kinds, section.Kind)
		}
		for name, kind := range map[string]reduce.SectionKind{
			"prose": reduce.SectionSummary, "user": reduce.SectionQuotes, "reminder": reduce.SectionQuotes,
			"tool": reduce.SectionLedger, "file": reduce.SectionLedger, "name": reduce.SectionIndex,
		} {
			if strings.Contains(section.Text, mark(name)) && section.Kind != kind {
				t.Errorf("%s stands in the section %s: %q", mark(name), section.Kind, section.Text)
			}
		}
	}
	if joined.String() != digest.Text {
		t.Errorf("joined, the sections are %q\nwant %q", joined.String(), digest.Text)
	}
	for _, name := range []string{"prose", "user", "reminder", "tool", "file", "name"} {
		if !strings.Contains(digest.Text, mark(name)) {
			t.Errorf("the digest lacks %s: %q", mark(name), digest.Text)
		}
	}
	want := []reduce.SectionKind{reduce.SectionNotice, reduce.SectionSummary, reduce.SectionQuotes, reduce.SectionLedger, reduce.SectionIndex}
	if !reflect.DeepEqual(kinds, want) {
		t.Errorf("the sections are %v, want %v", kinds, want)
	}
	if got := (reduce.Digest{}).Sections(); got != nil {
		t.Errorf("no digest has the sections %v", got)
	}
}

// TestSectionsOfASmallDigest finds the sections that are left where others are not.
func TestSectionsOfASmallDigest(t *testing.T) {
	s := newSession()
	var events []eventlog.Event
	for i := range 12 {
		id := fmt.Sprint("call", i)
		events = append(events,
			message(eventlog.RoleAssistant, eventlog.ToolCall{CallID: id, Name: "run", Arguments: `{"n":1}`}),
			message(eventlog.RoleTool, eventlog.ToolResult{CallID: id, Content: []eventlog.Block{eventlog.Text{Text: strings.Repeat("so it is. ", 100)}}}),
		)
	}
	if err := s.append(events...); err != nil {
		t.Fatal(err)
	}
	through := s.conv.Groups()[9].First
	v := reduce.NewPipeline(reducetest.Policy(), s.conv).Resume(reduce.State{CollapsedThrough: through, CollapsedFor: 4000})
	digest, _ := v.Digest()
	var kinds []reduce.SectionKind
	for _, section := range digest.Sections() {
		kinds = append(kinds, section.Kind)
	}
	if want := []reduce.SectionKind{reduce.SectionNotice, reduce.SectionLedger}; !reflect.DeepEqual(kinds, want) {
		t.Errorf("the sections are %v, want %v: %q", kinds, want, digest.Text)
	}
}
