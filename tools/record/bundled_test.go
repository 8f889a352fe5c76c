package main

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

const bundledSession = "../../cmd/contextd/internal/demo/session.jsonl"

// shape counts the elements of a session.
type shape struct {
	users, calls, parallel, repeated, failed, repaired, large int
}

// TestBundledSession checks that the demo's session has what makes it worth replaying.
func TestBundledSession(t *testing.T) {
	text, err := os.ReadFile(bundledSession)
	if err != nil {
		t.Fatal(err)
	}
	s := shapeOf(t, text)
	t.Logf("%d bytes, %+v", len(text), s)
	for name, tt := range map[string]struct{ got, least int }{
		"user messages": {s.users, 3}, "calls": {s.calls, 60}, "parallel groups": {s.parallel, 5},
		"reads of what was read before": {s.repeated, 4}, "failures": {s.failed, 5},
		"failures that are later repaired": {s.repaired, 3}, "large results": {s.large, 1},
	} {
		if tt.got < tt.least {
			t.Errorf("%d %s; want at least %d", tt.got, name, tt.least)
		}
	}
	if len(text) > 600<<10 {
		t.Errorf("it has %d bytes", len(text))
	}
}

func shapeOf(t *testing.T, text []byte) shape {
	t.Helper()
	var s shape
	asked, failed, given := map[string]string{}, map[string]bool{}, map[string]bool{}
	for line := range bytes.Lines(text) {
		e := &contextdv1.Event{}
		if err := protojson.Unmarshal(line, e); err != nil {
			t.Fatal(err)
		}
		if e.GetMessage().GetRole() == contextdv1.Role_ROLE_USER {
			s.users++
		}
		calls := 0
		for _, b := range e.GetMessage().GetBlocks() {
			if c := b.GetToolCall(); c != nil {
				calls++
				asked[c.GetCallId()] = c.GetName() + string(c.GetArgumentsJson())
			}
			r := b.GetToolResult()
			if r == nil {
				continue
			}
			what, body := asked[r.GetCallId()], r.GetContent()[0].GetText().GetText()
			switch {
			case r.GetIsError():
				s.failed++
				failed[what] = true
			case failed[what]:
				s.repaired++
				delete(failed, what)
			}
			if r.GetToolName() == "read_file" && given[what] {
				s.repeated++
			}
			given[what] = true
			if len(body) > 10<<10 {
				s.large++
			}
		}
		if s.calls += calls; calls > 1 {
			s.parallel++
		}
	}
	return s
}

// Texts that would reveal where and with what a session was recorded.
var untold = regexp.MustCompile(`(?i)/tmp/|/root\b|/home/[^d]|/Users/|proxy\.golang\.org|sum\.golang\.org|` +
	`\b(claude|codex|gemini|copilot|cursor|chatgpt|openhands|opencode)\b`)

func TestBundledSessionTellsNothingOfItsMaker(t *testing.T) {
	text, err := os.ReadFile(bundledSession)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		e := &contextdv1.Event{}
		if err := protojson.Unmarshal(line, e); err != nil {
			t.Fatal(err)
		}
		for _, b := range e.GetMessage().GetBlocks() {
			all := append(b.GetToolCall().GetArgumentsJson(), b.GetText().GetText()...)
			for _, part := range b.GetToolResult().GetContent() {
				all = append(all, part.GetText().GetText()...)
			}
			if found := untold.Find(all); found != nil {
				t.Errorf("%s says %q", e.GetEventId(), found)
			}
		}
	}
}
