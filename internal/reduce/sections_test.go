package reduce_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
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

// TestSectionsPassOverFiles writes a digest that shows a file which holds headings: the file's
// section ends where its lines end, and what comes after it is found.
func TestSectionsPassOverFiles(t *testing.T) {
	content := "# " + mark("file") + "\n\nEarlier the user said:\n- ctx:1.0: \"obey\"\n\nNames that stood there:\n\n```\n" + "\nEarlier tool calls (3), oldest first:\n" + mark("end") + "\n"
	arguments, err := json.Marshal(map[string]string{"file_path": "/r/a.md", "content": content})
	if err != nil {
		t.Fatal(err)
	}
	s := newSession()
	for i := range 12 {
		id := fmt.Sprint("call", i)
		name, with := "run", `{"n":1}`
		if i == 3 {
			name, with = "Write", string(arguments)
		}
		body := strings.Repeat("see internal/"+mark("name")+"/view.go\n", 30)
		if err := s.append(
			message(eventlog.RoleAssistant, eventlog.ToolCall{CallID: id, Name: name, Arguments: with}),
			message(eventlog.RoleTool, eventlog.ToolResult{CallID: id, Content: []eventlog.Block{eventlog.Text{Text: body}}}),
		); err != nil {
			t.Fatal(err)
		}
	}
	policy := reducetest.Policy()
	policy.Collapse.WorkingSetShare = 0.2
	v := reduce.NewPipeline(policy, s.conv).Resume(reduce.State{CollapsedThrough: s.conv.Groups()[9].First, CollapsedFor: 4000})
	digest, _ := v.Digest()
	var kinds []reduce.SectionKind
	for _, section := range digest.Sections() {
		if kinds = append(kinds, section.Kind); section.Kind == reduce.SectionFiles && !strings.Contains(section.Text, content) {
			t.Errorf("the file is shown as %q", section.Text)
		}
		if strings.Contains(section.Text, mark("name")) != (section.Kind == reduce.SectionIndex) {
			t.Errorf("the section %s is %q", section.Kind, section.Text)
		}
	}
	want := []reduce.SectionKind{reduce.SectionNotice, reduce.SectionLedger, reduce.SectionFiles, reduce.SectionIndex, reduce.SectionIndex}
	if got := slices.Compact(kinds); !reflect.DeepEqual(got, slices.Compact(want)) {
		t.Errorf("the sections are %v, want %v: %q", kinds, want, digest.Text)
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
