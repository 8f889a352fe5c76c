package transcript_test

import (
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// session makes events of words: u is a user message, c a custom event with a count, k a compaction, and any
// other word a part of the assistant's reply that its first letter names. A number after a colon is the
// event's usage.
func session(words string) transcript.Session {
	var s transcript.Session
	for _, word := range strings.Fields(words) {
		id, usage, _ := strings.Cut(word, ":")
		e := eventlog.Event{ID: id}
		if usage != "" {
			e.Labels = map[string]string{transcript.LabelPromptTokens: usage}
		}
		text := []eventlog.Block{eventlog.Text{Text: id}}
		switch id[0] {
		case 'u':
			e.Body = &eventlog.Message{Role: eventlog.RoleUser, Blocks: text}
		case 'c':
			e.Body = &eventlog.Custom{Type: "count"}
		case 'k':
			e.Body = &eventlog.Compaction{}
		default:
			e.Body = &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: id[:1], Blocks: text}
		}
		s.Events = append(s.Events, e)
	}
	return s
}

func words(s transcript.Session) string {
	var all []string
	for _, e := range s.Events {
		word := e.ID
		if usage := e.Labels[transcript.LabelPromptTokens]; usage != "" {
			word += ":" + usage
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}

func TestGather(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"u1 a1 a2 u2", "u1 a1 a2 u2"},
		{"a1 u1 a2 u2", "a1 a2 u1 u2"},
		{"a1 u1 b1 a2", "a1 u1 b1 a2"},
		{"a1 k1 a2", "a1 k1 a2"},
		{"a1 u1 a2 c1:7 b1 c2:9", "a1 a2:7 u1 c1:7 b1:9 c2:9"},
		{"a1:3 a2 c1:7", "a1:3 a2:3 c1:7"},
		{"a1 k1:7 b1", "a1 k1:7 b1"},
		{"c1:7 a1", "c1:7 a1"},
	} {
		in := session(tt.in)
		if got := words(transcript.Gather(in)); got != tt.want {
			t.Errorf("%s became %s, want %s", tt.in, got, tt.want)
		}
		if words(in) != tt.in {
			t.Errorf("%s was changed itself", tt.in)
		}
	}
}

func TestRewrite(t *testing.T) {
	got := transcript.Rewrite([]byte(` { "a" : 1.0, "b\"é":[1, 2], "c":{} } `[1:]), func(name string, value []byte) []byte {
		switch name {
		case "a":
			return nil
		case "c":
			return []byte("null")
		}
		return value
	})
	if want := `{"b\"é":[1,2],"c":null}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestUUID(t *testing.T) {
	a, b := transcript.UUID("x", "y"), transcript.UUID("xy")
	if !transcript.IsUUID(a) || a == b || a != transcript.UUID("x", "y") || a[14] != '5' {
		t.Errorf("%s and %s", a, b)
	}
}

// The usage of a reply is not set again for all its parts with each of them: that would take minutes here.
func TestUsageOfManyParts(t *testing.T) {
	const n = 100_000
	s := session(strings.Repeat("a:3 ", n-1) + "a:4 c1:7")
	usage := transcript.ReplyUsage(s.Events)
	if len(usage) != n || usage[0][transcript.LabelPromptTokens] != "4" {
		t.Errorf("%d parts have a usage, the first %v", len(usage), usage[0])
	}
}
