package claude_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness/claude"
	"github.com/contextd/contextd/internal/harness/harnesstest"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// TestFrames: the frame depends on who sent a message, how it came, and the version of Claude Code. It is not
// part of the logged message.
func TestFrames(t *testing.T) {
	const (
		task    = `,"origin":{"kind":"task-notification"}`
		loaded  = `[{"type":"tool_result","tool_use_id":"t","content":[{"type":"tool_reference","tool_name":"WebFetch"}]}]`
		message = "The user sent a new message while you were working:"
		notice  = "[SYSTEM NOTIFICATION - NOT USER INPUT]"
		nonUser = "[MESSAGE FROM NON-USER SOURCE - NOT USER INPUT]"
	)
	call := assistant("a", "m", `{"type":"tool_use","id":"t","name":"ToolSearch","input":{}}`, "")
	for name, tc := range map[string]struct {
		record, version string
		head, tail      string // of the text that is sent, "" where the message is sent as it is
	}{
		"a human's":                   {attached("q", `"Fix it."`, fromHuman), "2.1.329", "<system-reminder>\n" + message + "\nFix it.\n\nThis is how", "this turn.\n</system-reminder>"},
		"a human's, before":           {attached("q", `"Fix it."`, fromHuman), "2.1.204", "<system-reminder>\n" + message + "\nFix it.\n\nIMPORTANT: After", "Do not ignore it.\n</system-reminder>"},
		"a human's, long before":      {attached("q", `"Fix it."`, fromHuman), "2.1.19", "<system-reminder>\nThe user sent the following message:\nFix it.\n\nPlease", "tasks.\n</system-reminder>"},
		"of no version":               {attached("q", `"Fix it."`, fromHuman), "", "<system-reminder>\n" + message + "\nFix it.\n\nThis is how", "this turn.\n</system-reminder>"},
		"of another kind of version":  {attached("q", `"Fix it."`, fromHuman), "next.1.x", "<system-reminder>\n" + message + "\nFix it.\n\nThis is how", "this turn.\n</system-reminder>"},
		"with a picture":              {attached("q", picture, fromHuman), "2.1.329", "<system-reminder>\n" + message + "\nFix it.\n\nThis is how", "this turn.\n</system-reminder>"},
		"only in the queue":           {operation("remove", fix), "2.1.47", "<system-reminder>\n" + message + "\nFix it.\n\nIMPORTANT", "ignore it.\n</system-reminder>"},
		"a command":                   {attached("q", `"ls"`, `,"commandMode":"bash"`), "2.1.329", "<system-reminder>\n" + message + "\nls\n", "this turn.\n</system-reminder>"},
		"a task's":                    {attached("q", `"Done."`, task), "2.1.329", "<system-reminder>\n" + notice + "\nThis is", "consent.\n\nDone.\n</system-reminder>"},
		"a task's, by its mode":       {attached("q", `"Done."`, `,"commandMode":"task-notification"`), "2.1.161", "<system-reminder>\n" + notice + "\nThis is", "question.\n\nDone.\n</system-reminder>"},
		"a task's, before":            {attached("q", `"Done."`, task), "2.1.100", "<system-reminder>\n" + message + "\nDone.\n\nIMPORTANT", "ignore it.\n</system-reminder>"},
		"a task's, only in the queue": {operation("remove", `,"content":"<task-notification>x</task-notification>"`), "2.1.161", "<system-reminder>\n" + notice, "</task-notification>\n</system-reminder>"},
		"the harness's":               {attached("q", `"Done."`, `,"isMeta":true`), "2.1.224", "<system-reminder>\n" + nonUser + "\nDone.\n</system-reminder>", ""},
		"the harness's, before":       {attached("q", `"Done."`, `,"isMeta":true`), "2.1.223", "<system-reminder>\n" + message + "\nDone.", "this turn.\n</system-reminder>"},
		"a channel's":                 {attached("q", `"Done."`, `,"origin":{"kind":"channel"}`), "2.1.329", "", ""},
		"a task's turn":               {user("q", `"Done."`, task), "2.1.234", "<system-reminder>\n" + notice, "consent.\n\nDone.\n</system-reminder>"},
		"a task's turn, before":       {user("q", `"Done."`, task), "2.1.233", notice, "consent.\n\nDone."},
		"a task's turn, long before":  {user("q", `"Done."`, task), "2.1.204", "", ""},
		"words":                       {user("q", `"Done."`, fromHuman), "2.1.329", "", ""},
		"tools":                       {user("q", loaded, ""), "2.1.329", "Tool loaded.", ""},
		"tools, before":               {user("q", loaded, ""), "2.1.69", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			lines := []string{user("first", `"Hi."`, fmt.Sprintf(`,"version":%q`, tc.version)), call, tc.record}
			tr := read(t, lines...)
			e := tr.Sessions[0].Events[len(tr.Sessions[0].Events)-1]
			m := e.Body.(*eventlog.Message)
			sent, ok := claude.Harness.Sent(e, m)
			if ok != (tc.head != "") {
				t.Fatalf("framed is %v: %+v", ok, e.Labels)
			}
			said := transcript.Texts(sent.Body.(*eventlog.Message).Blocks)
			if text := strings.Join(said, "|"); ok && (!strings.HasPrefix(text, tc.head) || !strings.HasSuffix(text, tc.tail)) {
				t.Errorf("it is sent as %q", text)
			}
			if ok && sent.Injected() != (e.Injected() || len(transcript.Texts(m.Blocks)) == 0) {
				t.Errorf("sent as injected: %v", sent.Injected())
			}
			harnesstest.RoundTrip(t, suite(nil), []byte(strings.Join(lines, "\n")+"\n"), tr)
		})
	}
}
