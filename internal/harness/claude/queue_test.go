package claude_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/harness/harnesstest"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// operation and attached return records of the queue; extra has further members.
func operation(kind, extra string) string {
	return fmt.Sprintf(`{"type":"queue-operation","operation":%q%s}`, kind, extra)
}

func attached(uuid, prompt, extra string) string {
	return fmt.Sprintf(`{"type":"attachment","uuid":%q,"attachment":{"type":"queued_command","prompt":%s%s}}`, uuid, prompt, extra)
}

// users are the user messages, with a "!" before those that no human wrote.
func users(tr transcript.Transcript) []string {
	var all []string
	for _, e := range tr.Sessions[0].Events {
		m, ok := e.Body.(*eventlog.Message)
		if !ok || m.Role != eventlog.RoleUser {
			continue
		}
		var parts []string
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case eventlog.Text:
				parts = append(parts, b.Text)
			case eventlog.Media:
				parts = append(parts, "("+b.MIMEType+")")
			}
		}
		text := strings.Join(parts, " ")
		if e.Injected() {
			text = "!" + text
		}
		all = append(all, text)
	}
	return all
}

const (
	fix       = `,"content":"Fix it."`
	then      = `,"content":"Then stop."`
	begun     = `,"content":"{\"task_id\":\"b1\",\"tool_use_id\":\"t1\",\"description\":\"Run the tests\",\"task_type\":\"local_bash\"}"`
	absorbed  = `,"reason":"absorbed_mid_turn"`
	fromHuman = `,"origin":{"kind":"human"}`
	picture   = `[{"type":"text","text":"Fix it."},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAEC"}}]`
)

// TestQueue: a prompt that is sent while the agent works is one message, at the place where the model got it,
// however many records mention it.
func TestQueue(t *testing.T) {
	for name, tc := range map[string]struct {
		lines []string
		want  []string
	}{
		"attached":                                   {[]string{operation("enqueue", fix), attached("q", `"Fix it."`, fromHuman), operation("remove", fix+absorbed)}, []string{"Fix it."}},
		"attached alone":                             {[]string{attached("q", `"Fix it."`, "")}, []string{"Fix it."}},
		"removed, then attached":                     {[]string{operation("enqueue", fix), operation("remove", fix), attached("q", `"Fix it."`, fromHuman)}, []string{"Fix it."}},
		"removed alone":                              {[]string{operation("enqueue", fix), operation("remove", "")}, []string{"Fix it."}},
		"removed without having entered":             {[]string{operation("remove", fix+absorbed)}, []string{"Fix it."}},
		"removed from an empty queue":                {[]string{operation("remove", "")}, nil},
		"cancelled":                                  {[]string{operation("enqueue", fix), operation("remove", fix+`,"reason":"cancelled"`)}, nil},
		"pulled back":                                {[]string{operation("enqueue", fix), operation("popAll", fix), operation("enqueue", then), operation("remove", "")}, []string{"Then stop."}},
		"all pulled back":                            {[]string{operation("enqueue", fix), operation("enqueue", then), operation("popAll", ""), operation("remove", "")}, nil},
		"the second of two":                          {[]string{operation("enqueue", fix), operation("enqueue", then), operation("remove", then)}, []string{"Then stop."}},
		"two in their order":                         {[]string{operation("enqueue", fix), operation("enqueue", then), operation("remove", ""), operation("remove", "")}, []string{"Fix it.", "Then stop."}},
		"waits for the end of the turn":              {[]string{operation("enqueue", fix), operation("dequeue", ""), user("u", `"Fix it."`, fromHuman)}, []string{"Fix it."}},
		"sent as the user's besides":                 {[]string{operation("enqueue", fix), operation("remove", ""), user("u", `"Fix it."`, fromHuman)}, []string{"Fix it."}},
		"said again later":                           {[]string{operation("enqueue", fix), operation("remove", ""), assistant("a", "m", hello, ""), user("u", `"Fix it."`, "")}, []string{"Fix it.", "Fix it."}},
		"queued twice":                               {[]string{attached("q", `"Fix it."`, ""), operation("remove", fix), assistant("a", "m", hello, ""), operation("enqueue", fix), operation("remove", fix)}, []string{"Fix it.", "Fix it."}},
		"known by its record":                        {[]string{attached("q", `"Fix it."`, `,"source_uuid":"u"`), assistant("a", "m", hello, ""), user("u", `"Fix it."`, "")}, []string{"Fix it."}},
		"known by its record, from first":            {[]string{user("u", `"Fix it."`, ""), assistant("a", "m", hello, ""), attached("q", `"Fix it."`, `,"source_uuid":"u"`)}, []string{"Fix it."}},
		"attached again after an answer":             {[]string{attached("q", `"Fix it."`, ""), assistant("a", "m", hello, ""), attached("q", `"Fix it."`, ""), user("u", `"Fix it."`, "")}, []string{"Fix it.", "Fix it."}},
		"sent again behind a reply that is repeated": {[]string{assistant("a", "m", hello, ""), attached("q", `"Fix it."`, ""), assistant("a", "m", hello, ""), user("u", `"Fix it."`, "")}, []string{"Fix it."}},
		"attached with a picture":                    {[]string{attached("q", picture, fromHuman), operation("remove", "")}, []string{"Fix it. (image/png)"}},
		"the picture after the words":                {[]string{operation("remove", fix), attached("q", picture, fromHuman)}, []string{"Fix it.", "(image/png)"}},
		"in blocks":                                  {[]string{operation("enqueue", `,"content":[{"type":"text","text":"Fix it."}]`), operation("remove", "")}, []string{"Fix it."}},
		"a command":                                  {[]string{attached("q", `"make test"`, `,"commandMode":"bash"`)}, []string{"make test"}},
		"by a task":                                  {[]string{attached("q", `"Done."`, `,"commandMode":"task-notification"`)}, []string{"!Done."}},
		"by another agent":                           {[]string{attached("q", `"Done."`, `,"commandMode":"prompt","origin":{"kind":"peer"}`)}, []string{"!Done."}},
		"by the harness":                             {[]string{attached("q", `"Done."`, `,"isMeta":true`)}, []string{"!Done."}},
		"a human who quotes":                         {[]string{attached("q", `"<task-notification>x</task-notification>"`, fromHuman)}, []string{"<task-notification>x</task-notification>"}},
		"tasks that begin":                           {[]string{operation("enqueue", begun), operation("enqueue", fix), operation("enqueue", begun), operation("remove", ""), operation("remove", begun), operation("remove", "")}, []string{"Fix it."}},
		"notifications leave in silence":             {[]string{operation("enqueue", `,"content":"<task-notification>x</task-notification>"`), operation("enqueue", fix), operation("remove", "")}, []string{"Fix it."}},
		"of an odd shape":                            {[]string{attached("q", `7`, ""), operation("enqueue", `,"content":7`), `{"type":"attachment","attachment":"queued_command"}`, `{"type":"queue-operation","operation":{}}`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			lines := append([]string{user("first", `"Hi."`, "")}, tc.lines...)
			tr := read(t, lines...)
			if diff := cmp.Diff(append([]string{"Hi."}, tc.want...), users(tr)); diff != "" {
				t.Error(diff)
			}
			harnesstest.RoundTrip(t, suite(nil), []byte(strings.Join(lines, "\n")+"\n"), tr)
		})
	}
}

// TestQueueOfSubagents: a prompt that a subagent got does not count as given to the main session.
func TestQueueOfSubagents(t *testing.T) {
	side := strings.TrimSuffix(attached("s", `"Fix it."`, fromHuman), "}") + sidechain + "}"
	tr := read(t, user("first", `"Hi."`, ""), side, operation("remove", fix))
	if got := users(tr); !slices.Equal(got, []string{"Hi.", "Fix it."}) {
		t.Errorf("%q", got)
	}
}

// TestQueueBetween: a prompt that was sent during a compaction is kept by it.
func TestQueueBetween(t *testing.T) {
	lines := []string{
		user("u", `"Hi."`, ""), boundary("c", "auto"), operation("remove", fix), attached("q", `"Then stop."`, fromHuman),
		user("s", `"sum"`, isSummary), assistant("a", "m", hello, ""),
	}
	tr := read(t, lines...)
	c, ok := tr.Sessions[0].Events[3].Body.(*eventlog.Compaction)
	if !ok || !slices.Equal(c.KeptEventIDs, []string{"line-3", "q"}) {
		t.Errorf("kept %v", c)
	}
	harnesstest.RoundTrip(t, suite(nil), []byte(strings.Join(lines, "\n")+"\n"), tr)
}

// TestQueueReport: a warning counts the prompts that still wait at the end of the file.
func TestQueueReport(t *testing.T) {
	tr := read(t, user("u", `"Hi."`, ""), operation("enqueue", fix))
	for _, w := range tr.Warnings {
		if strings.Contains(w.Message, "wait in the queue") {
			return
		}
	}
	t.Errorf("no warning among %v", tr.Warnings)
}

// TestInjected: what the harness wrote is distinguished from what a human wrote, by the record's fields, or
// else by its whole text.
func TestInjected(t *testing.T) {
	const caveat = `"<local-command-caveat>x</local-command-caveat>"`
	for _, tc := range []struct {
		name, content, extra string
		want                 bool
	}{
		{"plain", `"Fix it."`, "", false},
		{"meta", `"Fix it."`, `,"isMeta":true`, true},
		{"of a human", `"<task-notification>x</task-notification>"`, fromHuman, false},
		{"of a task", `"Done."`, `,"origin":{"kind":"task-notification"}`, true},
		{"of a peer's turn", `"Done."`, `,"turnOrigin":"peer"`, true},
		{"of a human's turn", `"Done."`, `,"turnOrigin":"human"`, false},
		{"of a program's turn", `"Done."`, `,"turnOrigin":"sdk"`, false},
		{"of the system", `"Done."`, `,"promptSource":"system"`, true},
		{"an odd origin", `"Done."`, `,"origin":"human","turnOrigin":7,"promptSource":null`, false},
		{"an interruption", `"Stopped."`, `,"interruptedMessageId":"m"`, true},
		{"an interruption by its text", `[{"type":"text","text":"[Request interrupted by user for tool use]"}]`, "", true},
		{"words about an interruption", `"[Request interrupted by user] is what I see."`, "", false},
		{"a notification", `"<task-notification>\nx\n</task-notification>\nRead the output file to retrieve the result: /tmp/x"`, "", true},
		{"a notification and words", `"<task-notification>x</task-notification>\nWhat is this?"`, "", false},
		{"a tag that is not closed", `"<task-notification> is what I see"`, "", false},
		{"a tag of the user's", `"<todo>x</todo>"`, "", false},
		{"two reminders", `[{"type":"text","text":"<system-reminder>a</system-reminder>"},{"type":"text","text":"<system-reminder>b</system-reminder>"}]`, "", true},
		{"a reminder and words", `[{"type":"text","text":"<system-reminder>a</system-reminder>"},{"type":"text","text":"Fix it."}]`, "", false},
		{"a reminder and a picture", `[{"type":"text","text":"<system-reminder>a</system-reminder>"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAEC"}}]`, "", false},
		{"output", `"<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>"`, "", true},
		{"input", `"<bash-input>ls</bash-input>"`, "", false},
		{"a command of the terminal's", `"<command-name>/exit</command-name>\n<command-message>exit</command-message>\n<command-args></command-args>"`, "", true},
		{"a command with words", `"<command-name>/compact</command-name>\n<command-message>compact</command-message>\n<command-args>keep the plan</command-args>"`, "", false},
		{"a command that asks", `"<command-message>review</command-message>\n<command-name>/review</command-name>"`, "", false},
	} {
		tr := read(t, user("u", tc.content, tc.extra))
		if got := tr.Sessions[0].Events[0].Injected(); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
	tr := read(t, user("c", caveat, `,"isMeta":true`), user("n", `"<command-name>/model</command-name><command-args>x</command-args>"`, ""), user("u", `"<command-name>/model</command-name><command-args>x</command-args> Why?"`, ""))
	for i, want := range []bool{true, true, false} {
		if got := tr.Sessions[0].Events[i].Injected(); got != want {
			t.Errorf("after a caveat, message %d: %v", i, got)
		}
	}
}

// TestOutputsAreNotTheUsers: what a program printed may hold the end of the element around it, and words after that.
func TestOutputsAreNotTheUsers(t *testing.T) {
	const printed, reported = "<bash-stdout>a</bash-stdout>\nObey.</bash-stdout><bash-stderr></bash-stdout></bash-stderr>", "<task-notification>a</task-notification> Obey. </task-notification>"
	tr := read(t, user("u1", fmt.Sprintf("%q", printed), ""), user("u2", fmt.Sprintf("%q", reported), ""), user("u3", `"<bash-stdout>a</bash-stdout> fails."`, ""))
	if diff := cmp.Diff([]string{"!" + printed, "!" + reported, "<bash-stdout>a</bash-stdout> fails."}, users(tr)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBesideTheUsersWords: what the harness puts into a prompt is no human's.
func TestBesideTheUsersWords(t *testing.T) {
	texts := func(all ...string) string {
		var parts []string
		for _, text := range all {
			parts = append(parts, fmt.Sprintf(`{"type":"text","text":%q}`, text))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	const selected = "<ide_selection>a</ide_selection> Obey.</ide_selection>"
	for content, want := range map[string]string{
		texts(selected, "Fix it."): "0", texts("Fix it.", "", selected, selected): "1,2", texts("Fix it."): "", texts(selected): "", texts(selected, selected): "",
	} {
		if got := read(t, user("u1", content, "")).Sessions[0].Events[0].Labels[eventlog.LabelInjectedBlocks]; got != want {
			t.Errorf("%s: %q", content, got)
		}
	}
}
