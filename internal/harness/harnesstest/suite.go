// Package harnesstest is the conformance suite of harnesses: what every reader and
// every writer of transcripts must hold to.
package harnesstest

import (
	"bytes"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Subject is what the suite is run on. Where it has no writer, the reader alone is tested.
type Subject struct {
	transcript.Harness
	// Fixtures are whole files by name. Each must be readable.
	Fixtures map[string][]byte
	// Lined says that the harness appends to its files line by line, so that a file
	// that grew must give the same events with more after them.
	Lined bool
	// Entries splits a file into what is compared one by one. Nil is LineEntries with
	// the member "type" as kind and "uuid" or "id" as id.
	Entries func(file []byte) ([]Entry, error)
	// Lacks says which of the Dimensions a file cannot hold of a session that is not
	// the harness's own, and why.
	Lacks map[string]string
}

// Entry is one entry of a file.
type Entry struct {
	// Kind is what the harness's NotKept names it by.
	Kind string
	// ID identifies a repeated entry; empty if it has none.
	ID string
	// Value is its JSON, decoded with numbers as json.Number.
	Value any
}

// Run runs the suite: the reader is deterministic, the log admits what it makes,
// growth only adds, nothing is fatal that is damage; the writer is deterministic,
// what it writes reads as what was read, and equals the original entry by entry.
func Run(t *testing.T, h Subject) {
	t.Helper()
	if len(h.Fixtures) == 0 {
		t.Fatal("no fixtures")
	}
	for _, name := range slices.Sorted(maps.Keys(h.Fixtures)) {
		data := h.Fixtures[name]
		t.Run(name, func(t *testing.T) {
			tr, err := h.Read(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			t.Run("reader", func(t *testing.T) { testReader(t, h, data, tr) })
			if h.Write == nil {
				return
			}
			t.Run("writer", func(t *testing.T) { testWriter(t, h, tr) })
			t.Run("entries", func(t *testing.T) { testEntries(t, h, data, tr) })
		})
	}
	if h.Write != nil {
		t.Run("foreign sessions", func(t *testing.T) { testForeign(t, h) })
	}
}

// Foreign is a session that no harness wrote: what a runtime appends by itself,
// with a compaction of contextd's own.
func Foreign() transcript.Transcript {
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	var events []eventlog.Event
	add := func(id string, body eventlog.Body, labels map[string]string) {
		at = at.Add(time.Second)
		events = append(events, eventlog.Event{ID: id, Time: at, Body: body, Labels: labels})
	}
	say := func(id string, role eventlog.Role, group string, blocks ...eventlog.Block) {
		m := &eventlog.Message{Role: role, GroupID: group, Blocks: blocks}
		var labels map[string]string
		if role == eventlog.RoleAssistant {
			m.Model = "model-x"
			labels = transcript.Usage{Prompt: 120, CacheRead: 100, Output: 7}.Labels()
		}
		add(id, m, labels)
	}
	const a, u, tool = eventlog.RoleAssistant, eventlog.RoleUser, eventlog.RoleTool
	say("event/1", u, "", eventlog.Text{Text: "Fix \"it\", <please> & thanks\nséance 😀"})
	say("event/2", a, "", eventlog.Text{Text: "I look."},
		eventlog.ToolCall{CallID: "call 1", Name: "read", Arguments: `{"path":"a.go","n":1.0,"big":9007199254740993,"huge":1e400}`},
		eventlog.ToolCall{CallID: "call:2", Name: "run", Arguments: `{"cmd":"go test \u003c ./..."}`})
	say("event/3", tool, "", eventlog.ToolResult{CallID: "call 1", Content: []eventlog.Block{eventlog.Text{Text: "package a"}}})
	say("event/4", tool, "", eventlog.ToolResult{CallID: "call:2", IsError: true, Content: []eventlog.Block{eventlog.Text{Text: "Exit code: 1\nFAIL"}}})
	say("event/5", a, "g5", eventlog.Text{Text: "It fails."})
	say("event/6", u, "", eventlog.Text{Text: "Go on."})
	pre, post := uint64(5000), uint64(900)
	add("event/7", &eventlog.Compaction{
		Trigger: eventlog.TriggerThreshold, Summary: "The parser was read and fails.", PreTokens: &pre, PostTokens: &post,
		KeptEventIDs: []string{"event/6"}, Mode: "prefix", Strategy: "summary_prefix",
	}, nil)
	say("event/8", a, "g8", eventlog.ToolCall{CallID: "call-3", Name: "list", Arguments: `[1,"two"]`})
	say("event/9", tool, "", eventlog.ToolResult{CallID: "call-3", Content: []eventlog.Block{eventlog.Text{Text: "nothing"}}})
	add("event/10", &eventlog.Compaction{Trigger: eventlog.TriggerManual, Summary: "Nothing was found."}, nil)
	say("event/11", a, "g11", eventlog.Text{Text: "Done."})
	return transcript.Transcript{Sessions: []transcript.Session{{Events: events}}, Compactions: 2}
}

// testForeign: a session of contextd's own becomes a file that reads as the same
// session, but for what the harness says that it lacks.
func testForeign(t *testing.T, h Subject) {
	t.Helper()
	foreign := Foreign()
	file, report := write(t, h, foreign)
	tr, err := h.Read(bytes.NewReader(file))
	if err != nil {
		t.Fatalf("what was written cannot be read: %v\n%s", err, file)
	}
	Admitted(t, tr)
	if report.Compactions != foreign.Compactions {
		t.Errorf("the report counts %d compactions of %d", report.Compactions, foreign.Compactions)
	}
	want, got := FactsOf(foreign), FactsOf(tr)
	for _, d := range Dimensions {
		diff := cmp.Diff(want[d], got[d])
		if why, lacks := h.Lacks[d]; lacks {
			if diff == "" && len(want[d]) > 0 {
				t.Errorf("%s are held, although they are said to be lacking: %s", d, why)
			}
		} else if diff != "" {
			t.Errorf("%s (-want +got):\n%s", d, diff)
		}
	}
	for d := range h.Lacks {
		if !slices.Contains(Dimensions, d) {
			t.Errorf("%q is no dimension", d)
		}
	}
	// What was written and read is stable from then on.
	second, _ := write(t, h, tr)
	again, err := h.Read(bytes.NewReader(second))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plain(tr), plain(again)); diff != "" {
		t.Errorf("written again, it reads otherwise:\n%s", diff)
	}
	empty := transcript.Transcript{Sessions: []transcript.Session{{}}}
	if _, err := h.Write(&bytes.Buffer{}, empty, transcript.WriteOptions{}); err != nil {
		t.Errorf("a session without events: %v", err)
	}
}
