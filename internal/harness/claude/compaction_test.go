package claude_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
)

// TestReplayedMessagesAreKept: messages that Claude Code writes again after a boundary are kept events of the
// compaction, and still are after the session was written and read.
func TestReplayedMessagesAreKept(t *testing.T) {
	first, second, reply := user("u", `"Hi."`, ""), user("v", `"Go on."`, ""), assistant("a", "m", hello, "")
	auto, summed := boundary("c", "auto"), user("s", `"sum"`, isSummary)
	more := user("w", `"More."`, "")
	for name, tc := range map[string]struct {
		lines []string
		want  []string
	}{
		"after the summary":     {[]string{first, second, reply, auto, summed, second, reply, more}, []string{"v", "a"}},
		"before the summary":    {[]string{first, second, reply, auto, second, summed, reply, more}, []string{"v", "a"}},
		"twice":                 {[]string{first, second, reply, auto, summed, second, second, reply, reply}, []string{"v", "a"}},
		"of after the boundary": {[]string{first, reply, auto, summed, second, second, more}, nil},
		"of the newest of two":  {[]string{first, reply, auto, summed, second, boundary("d", "auto"), user("t", `"sum 2"`, isSummary), second, more}, []string{"v"}},
		"a summary alone":       {[]string{first, second, reply, summed, second, more}, nil},
		"none":                  {[]string{first, reply, auto, summed, more}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tr := read(t, tc.lines...)
			for again := range 2 {
				e := newestCompaction(t, tr)
				if kept := e.Body.(*eventlog.Compaction).KeptEventIDs; !slices.Equal(kept, tc.want) {
					t.Errorf("written %d times it kept %q; want %q", again, kept, tc.want)
				}
				if again == 0 && (e.Labels["claude.replayed"] != "") != (tc.want != nil) {
					t.Errorf("labels are %v", e.Labels)
				}
				var file bytes.Buffer
				if _, err := harness.Write(&file, tr, "claude", harness.WriteOptions{}); err != nil {
					t.Fatal(err)
				}
				tr = read(t, strings.Split(strings.TrimSpace(file.String()), "\n")...)
			}
		})
	}
}

func newestCompaction(t *testing.T, tr harness.Transcript) eventlog.Event {
	t.Helper()
	for _, e := range slices.Backward(tr.Sessions[0].Events) {
		if _, ok := e.Body.(*eventlog.Compaction); ok {
			return e
		}
	}
	t.Fatal("there is no compaction")
	return eventlog.Event{}
}
