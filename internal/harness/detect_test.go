package harness_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness"
)

// TestDetectsItsOwn: a file is recognised by what only its harness writes, not by what files of unknown
// programs may have as well.
func TestDetectsItsOwn(t *testing.T) {
	const sqlite = "SQLite format 3\x00"
	for _, tc := range []struct{ name, file, want string }{
		{"pi", `{"type":"session","id":"s","timestamp":"2025-11-20T23:33:00.805Z","cwd":"/src"}`, "pi"},
		{"a session that begins like one of pi", `{"type":"session","version":0,"id":"s","createdAt":1786073817152,"cwd":"/src"}` + "\n" +
			`{"type":"turn/start","seq":0,"time":1786073817153,"data":{}}`, "dsh"},
		{"a session that another program began", `{"type":"session","version":0,"id":"s","createdAt":1786073817152,"cwd":"/src"}` + "\n" +
			`{"type":"begin","data":{}}`, ""},
		{"a session and records of another program", `{"type":"session","name":"s"}` + "\n" +
			`{"type":"step","id":"1","timestamp":"2025-11-20T23:33:00.805Z","cwd":"/src"}`, ""},
		{"what Gemini CLI prints", `{"type":"message","role":"user","content":"hi"}` + "\n" + `{"type":"init","timestamp":"2026-01-30T06:14:16.241Z","session_id":"s","model":"m"}`, "gemini"},
		{"events of an agent that is another program", `{"role":"system","kind":"status","time":"2026-08-16T09:36:02Z","raw":{}}` + "\n" +
			`{"role":"user","kind":"outcome","time":"2026-08-16T09:36:02Z","raw":{}}` + "\n" +
			`{"role":"agent","kind":"message","content":"hi","time":"2026-08-16T09:36:05Z","raw":{}}`, ""},
		{"a subagent's records of an extension of pi", `{"version":1,"recordType":"message","role":"user","text":"hi"}` + "\n" +
			`{"version":1,"recordType":"message","role":"assistant","text":"I look.","message":{"role":"assistant","content":[{"type":"text","text":"I look."}]}}`, ""},
		{"what OpenCode says on stderr, and its session", "Exporting session: ses_1\n{\n  \"info\": {\"id\":\"ses_1\"", "opencode"},
		{"messages of OpenCode, one a line", `{"info":{"id":"msg_1","sessionID":"ses_1","role":"user"},"parts":[]}`, "opencode"},
		{"a list of messages of OpenCode", `[{"info":{"id":"msg_1","sessionID":"ses_1","role":"user"},"parts":[]}]`, "opencode"},
		{"a list of phone calls", `[{"call_id":"7","type":"incoming","number":"1"},{"call_id":"8","type":"ai"}]`, ""},
		{"a list of what is human", `[{"type":"human","name":"Ann"},{"type":"ai","name":"Bob"}]`, ""},
		{"OpenAI's items without a role", `[{"type":"function_call_output","call_id":"c","output":"x"}]`, "chat"},
		{"messages of LangChain", `[{"type":"ai","content":"hi"}]`, "chat"},
		{"a database of Cursor", sqlite + "\x00CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB)", "cursor"},
		{"a database of another program", sqlite + "\x00CREATE TABLE messages (id TEXT PRIMARY KEY, role TEXT)", ""},
	} {
		got, ok := harness.Detect([]byte(tc.file))
		if got != tc.want || ok != (tc.want != "") {
			t.Errorf("%s is recognised as %q instead of %q", tc.name, got, tc.want)
		}
		if _, err := harness.Read(strings.NewReader(tc.file), ""); tc.want == "" && (err == nil || !strings.Contains(err.Error(), "the format is none of")) {
			t.Errorf("%s is read: %v", tc.name, err)
		}
	}
}

// TestALongFirstText: a format is recognised by the names before a text of which the file's beginning does not have
// all. Where these do not suffice, the error does not say that the format is another one.
func TestALongFirstText(t *testing.T) {
	long := strings.Repeat("long ", 1<<20)
	run := `{"instance_id":"a","test_result":{"git_patch":"` + long + `"},"history":[{"source":"user","timestamp":"2026-01-23T16:27:34","action":"message","args":{"content":"hi"}}]}`
	for file, want := range map[string]string{
		`[{"role":"user","content":"` + long + `"}]`:                                                 "chat",
		`{"messages":[{"role":"user","content":[{"type":"text","text":"` + long + `"}]}]}`:           "chat",
		`{"role":"user","content":"` + long + `"}` + "\n" + `{"role":"assistant","content":"short"}`: "chat",
		run + "\n" + run:            "openhands",
		"[" + run + "," + run + "]": "openhands",
	} {
		got, err := harness.Read(strings.NewReader(file), "")
		if err != nil || got.Harness != want {
			t.Errorf("%.40s is of %q: %v", file, got.Harness, err)
		}
	}
	for _, name := range []string{"", "chat"} {
		got, err := harness.Read(strings.NewReader(`[{"content":"`+long+`","role":"user"}]`), name)
		if name == "" && (err == nil || !strings.Contains(err.Error(), "not recognised by the first 1024 KiB")) || name != "" && (err != nil || len(got.Sessions) != 1) {
			t.Errorf("read as %q: %v", name, err)
		}
	}
	larger := `[{"role":"user","content":"` + strings.Repeat("long ", 9<<20) + `"}]`
	if _, err := harness.Read(strings.NewReader(larger), ""); err == nil || !strings.Contains(err.Error(), "bytes in a record") {
		t.Errorf("a text of 45 MiB: %v", err)
	}
}

// TestWhyNotJSON: the error for a file that could be a transcript says what keeps it from being read.
func TestWhyNotJSON(t *testing.T) {
	for file, want := range map[string]string{
		"\xff\xfe[\x00{\x00": "UTF-16",
		"[\x00{\x00":         "UTF-16",
		"\x00[\x00{":         "UTF-16",
		"[{\"role\":\"user\",\"content\":\"a\x00b\"}]": "not JSON: jsontext: invalid character '\\x00'",
		`[{"role":"user" "content":"x"}]`:              "not JSON: jsontext: ",
		`[{"a":1}]`:                                    "none of",
	} {
		if _, err := harness.Read(strings.NewReader(file), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", file, err, want)
		}
	}
}

// TestNothingIsOfNoFormat: the error for an empty file says that it is empty, not that its format is wrong.
func TestNothingIsOfNoFormat(t *testing.T) {
	for _, file := range []string{"", "\n", "\xef\xbb\xbf \n"} {
		if _, err := harness.Read(strings.NewReader(file), ""); err == nil || !strings.HasSuffix(err.Error(), "there is nothing in it") {
			t.Errorf("%q: %v", file, err)
		}
	}
}

// TestNamesTheOtherFile: the error for a file that a harness writes only for display names the file to
// import.
func TestNamesTheOtherFile(t *testing.T) {
	for _, file := range []string{
		`[{"ts":1770577372307,"type":"say","say":"task","text":"Look.","images":[]},{"ts":1770577372309,"type":"ask","ask":"followup","text":"Where?"}]`,
		"[\n  {\n    \"ts\": 1767644899093,\n    \"type\": \"ask\",\n    \"ask\": \"resume_task\"\n  }\n]\n",
	} {
		namesOther(t, file, "import api_conversation_history.json of the same folder")
	}
	namesOther(t, `{"display":"Fix it.","pastedContents":{},"timestamp":1770577372307,"project":"/src"}`+"\n", "import projects/ of the same folder")
	namesOther(t, `[{"sessionId":"s","messageId":0,"type":"user","message":"Fix it.","timestamp":"2026-01-30T06:14:16.241Z"}]`, "import chats/ of the same folder")
	namesOther(t, `{"timestamp":1761735000.1,"message":{"type":"TurnBegin","payload":{"user_input":"Fix it."}}}`+"\n", "import context.jsonl of the same folder")
	for _, file := range []string{
		`{"id":"prt_1","sessionID":"ses_1","messageID":"msg_1","type":"text","text":"hi"}`,
		`{"id":"msg_1","sessionID":"ses_1","role":"user","time":{"created":1730000201000}}`,
		`{"id":"ses_1","version":"1.0.0","projectID":"p","directory":"/src","title":"Hi","time":{"created":1730000200000}}`,
	} {
		namesOther(t, file, `import what "opencode export" writes`)
	}
	namesOther(t, "PK\x03\x04\x14\x00", "a zip archive: unpack it")
	namesOther(t, "\x28\xb5\x2f\xfd\x04", "compressed by zstd: unpack it")
	namesOther(t, `{"name":"x"}`, `messages with "role" and "content"`)
}

func namesOther(t *testing.T, file, want string) {
	t.Helper()
	_, err := harness.Read(strings.NewReader(file), "")
	var format *harness.FormatError
	if !errors.As(err, &format) || !strings.Contains(err.Error(), want) {
		t.Errorf("%.40q: %v", file, err)
	}
}

// TestDetectsBehindTrajectory: SWE-agent writes its steps, each with the whole prompt, before its history, so
// that the beginning of the file holds no message.
func TestDetectsBehindTrajectory(t *testing.T) {
	const step = `{"action":"ls","observation":"a","response":"I look.","thought":"I look.","state":{},"query":[`
	query := strings.Repeat(`{"role":"user","content":"Fix it."},`, 2000)
	file := `{"trajectory":[` + strings.TrimSuffix(strings.Repeat(step+strings.TrimSuffix(query, ",")+`]},`, 40), ",") +
		`],"history":[{"role":"user","content":"Fix it."},{"role":"assistant","content":"I look.","thought":"I look.","action":"ls"},{"role":"user","content":"a"}],"info":{}}`
	tr, err := harness.Read(strings.NewReader(file), "")
	if err != nil {
		t.Fatal(err)
	}
	if tr.Harness != "chat" || len(tr.Sessions) != 1 || len(tr.Sessions[0].Events) != 3 {
		t.Errorf("%s with %d sessions: %v", tr.Harness, len(tr.Sessions), tr.Sessions)
	}
}
