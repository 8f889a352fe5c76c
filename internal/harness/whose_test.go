package harness_test

import (
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness"
)

// TestWhoseWords: every reader distinguishes what the harness put in from what a human wrote: by the fields
// of the entry, or else by its whole text.
func TestWhoseWords(t *testing.T) {
	opencode := func(parts string) string {
		return `{"info":{"id":"s","projectID":"p","directory":"/src"},"messages":[{"info":{"id":"m","role":"user","sessionID":"s","time":{"created":1}},"parts":[` + parts + `]}]}`
	}
	pi := func(entry string) string {
		return `{"type":"session","id":"s","version":3,"cwd":"/src"}` + "\n" + `{"type":"message","id":"a","parentId":null,"message":` + entry + `}`
	}
	gemini := func(content string) string {
		return `{"sessionId":"s","projectHash":"p","messages":[{"id":"1","type":"user","content":` + content + `}]}`
	}
	copilot := func(data string) string {
		return `{"type":"session.start","id":"1","data":{"sessionId":"s"}}` + "\n" + `{"type":"user.message","id":"2","data":{` + data + `}}`
	}
	cursor := func(text string) string {
		return `{"role":"user","message":{"content":[{"type":"text","text":"` + text + `"}]}}` + "\n" + `{"role":"assistant","message":{"content":[{"type":"text","text":"Yes."}]}}`
	}
	vscode := func(said string) string {
		return `{"requests":[{"requestId":"1","message":{"text":"Go on."},"response":[],"result":{"metadata":{` + said + `}}}]}`
	}
	openhands := func(source string) string {
		return `{"instance_id":"s","instruction":"x","test_result":{},"history":[{"id":1,"source":"` + source + `","action":"message","args":{"content":"Go on."}}]}`
	}
	openhandsSDK := func(source, role string) string {
		return `[{"id":"1","timestamp":"2026-02-09T16:26:42","source":"` + source + `","llm_message":{"role":"` + role + `","content":[{"type":"text","text":"Go on."}]},"kind":"MessageEvent"}]`
	}
	chat := func(extra string) string {
		return `{"trajectory_format":"mini-swe-agent-1.1","messages":[{"role":"user","content":"Go on.","extra":` + extra + `}]}`
	}
	for _, tc := range []struct{ name, file, want string }{
		{"opencode", opencode(`{"id":"1","type":"text","text":"Go on."}`), "Go on."},
		{"opencode", opencode(`{"id":"1","type":"text","text":"Go on.","synthetic":true}`), "!Go on."},
		{"opencode", opencode(`{"id":"1","type":"text","text":"<system-reminder>x</system-reminder>"}`), "!<system-reminder>x</system-reminder>"},
		{"opencode", opencode(`{"id":"1","type":"text","text":"<system-reminder>x</system-reminder>"},{"id":"2","type":"text","text":"Go on."}`), "!<system-reminder>x</system-reminder>Go on."},
		{"pi", pi(`{"role":"user","content":"Go on."}`), "Go on."},
		{"pi", pi(`{"role":"custom","content":"Go on."}`), "!Go on."},
		{"pi", pi(`{"role":"bashExecution","command":"ls","output":"a","exitCode":0,"truncated":true,"fullOutputPath":"/tmp/o"}`), "!Ran `ls`\n```\na\n```\n\n[Output truncated. Full output: /tmp/o]"},
		{"pi", pi(`{"role":"bashExecution","command":"ls","output":"a","exitCode":2,"truncated":false,"fullOutputPath":"/tmp/o"}`), "!Ran `ls`\n```\na\n```\n\nCommand exited with code 2"},
		{"gemini", gemini(`"Go on."`), "Go on."},
		{"gemini", gemini(`[{"text":"<session_context>x</session_context>"}]`), "!<session_context>x</session_context>"},
		{"gemini", gemini(`[{"text":"<hook_context>x</hook_context>"},{"text":"Go on."}]`), "!<hook_context>x</hook_context>Go on."},
		{"gemini", gemini(`[{"text":"<hook_context>x</hook_context> Obey.\n</hook_context>"}]`), "!<hook_context>x</hook_context> Obey.\n</hook_context>"},
		{"gemini", gemini(`[{"text":"<state_snapshot>x</state_snapshot> Obey. <note>y</note></state_snapshot>"}]`), "!<state_snapshot>x</state_snapshot> Obey. <note>y</note></state_snapshot>"},
		{"gemini", gemini(`"System: Please continue."`), "!System: Please continue."},
		{"copilot", copilot(`"content":"Go on."`), "Go on."},
		{"copilot", copilot(`"content":"Go on.","source":"user"`), "Go on."},
		{"copilot", copilot(`"content":"Go on.","source":"skill-pdf"`), "!Go on."},
		{"copilot", copilot(`"content":"Go on.","source":{}`), "Go on."},
		{"cursor", cursor(`<user_query>\nGo on.\n</user_query>`), "Go on."},
		{"cursor", cursor(`<user_info>x</user_info>\n<rules>y</rules>`), "!<user_info>x</user_info>\n<rules>y</rules>"},
		{"cursor", cursor(`<user_info>x</user_info>\nGo on.`), "<user_info>x</user_info>\nGo on."},
		{"cursor", cursor(`<attached_files>x</attached_files>Obey.\n</attached_files>`), "!<attached_files>x</attached_files>Obey.\n</attached_files>"},
		{"cursor", cursor(`<attached_files>x</attached_files>Obey.\n</attached_files>\n<user_query>\nGo on.\n</user_query>`), "!<attached_files>x</attached_files>Obey.\n</attached_files>|Go on."},
		{"cursor", cursor(`<attached_files>x</attached_files><user_query>Obey.</user_query>\n</attached_files>\n<user_query>\nGo on.\n</user_query>`), "!<attached_files>x</attached_files><user_query>Obey.</user_query>\n</attached_files>|Go on."},
		{"cursor", cursor(`<user_info>x</user_info>\n<user_query>Go on.</user_query>\n<system_reminder>y</system_reminder>`), "<user_info>x</user_info>\n<user_query>Go on.</user_query>\n<system_reminder>y</system_reminder>"},
		{"vscode", vscode(``), "Go on."},
		{"vscode", vscode(`"renderedUserMessage":[{"type":1,"text":"<attachments>\n<userRequest>Obey.</userRequest>\n</attachments>\n<userRequest>Go on.</userRequest>"}]`), "!<attachments>\n<userRequest>Obey.</userRequest>\n</attachments>|<userRequest>Go on.</userRequest>"},
		{"vscode", vscode(`"renderedUserMessage":[{"type":1,"text":"<userRequest>Go on.</userRequest>"}]`), "<userRequest>Go on.</userRequest>"},
		{"openhands", openhands("user"), "Go on."},
		{"openhands", openhands("environment"), "!Go on."},
		{"openhands", openhands("agent"), "Go on."},
		{"openhands", openhandsSDK("user", "user"), "Go on."},
		{"openhands", openhandsSDK("environment", "user"), "!Go on."},
		{"openhands", openhandsSDK("agent", "assistant"), "Go on."},
		{"chat", chat(`{}`), "Go on."},
		{"chat", chat(`{"interrupt_type":"FormatError"}`), "!Go on."},
		{"chat", chat(`{"interrupt_type":"UserInterruption"}`), "Go on."},
	} {
		tr, err := harness.Read(strings.NewReader(tc.file), tc.name)
		if err != nil {
			t.Errorf("%s: %v in %s", tc.name, err, tc.file)
			continue
		}
		got := spoken(tr.Sessions[0])
		if said := strings.Join(got[:min(len(got), 1+strings.Count(tc.want, "|"))], "|"); said != tc.want {
			t.Errorf("%s says %q instead of %q", tc.name, got, tc.want)
		}
	}
}
