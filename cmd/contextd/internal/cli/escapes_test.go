package cli

import (
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// escapes clears the screen, writes to the clipboard, and turns the direction of text.
const escapes = "\x1b[2J\x1b]52;c;eA==\a\u009b31m\u202e"

var escape = regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f]|\u0080|\u009b|\u202e")

// Names in a log are anybody's, as texts are. What is written for people has nothing of them that would move the
// cursor of a terminal, or begin a line.
func TestNamesDoNotReachTheTerminal(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	run := func(in string, args ...string) string {
		t.Helper()
		var out, diagnostics strings.Builder
		p := Program{Stdin: strings.NewReader(in), Stdout: &out, Stderr: &diagnostics, LookupEnv: func(string) (string, bool) { return "", false }}
		if code := p.Run(t.Context(), append(args, "--embedded", data)); code != ExitOK {
			t.Fatalf("%q: exit code %d: %s", args, code, &diagnostics)
		}
		return out.String() + diagnostics.String()
	}
	type m = map[string]any
	blob := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	evil := func(name string) string { return name + escapes }
	twoLines := evil("read") + "\nFORGED"
	quoted, err := json.Marshal(m{"path": evil("/tmp/x")})
	if err != nil {
		t.Fatal(err)
	}
	var events strings.Builder
	for _, e := range []m{
		{"labels": m{"k": evil("label")}, "message": m{"role": "ROLE_USER", "group_id": evil("group"), "blocks": []m{{"text": m{"text": evil("hello")}}}}},
		{"message": m{"role": "ROLE_ASSISTANT", "model": evil("model"), "blocks": []m{
			{"thinking": m{"text": evil("thought")}}, {"tool_call": m{"call_id": evil("c"), "name": twoLines, "arguments_json": blob(string(quoted))}},
		}}},
		{"message": m{"role": "ROLE_TOOL", "blocks": []m{{"tool_result": m{"call_id": evil("c"), "tool_name": twoLines, "content": []m{
			{"text": m{"text": evil("result")}}, {"media": m{"mime_type": evil("image/png"), "uri": evil("http://x/")}},
		}}}}}},
		{"reminder": m{"source": evil("source"), "body": evil("body")}},
		{"custom": m{"type": evil("type"), "json": blob(string(quoted))}},
		{"message": m{"role": "ROLE_ASSISTANT", "blocks": []m{{"provider": m{"provider": evil("provider"), "json": blob("{}")}}}}},
	} {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		events.Write(append(line, '\n'))
	}
	run("", "sessions", "create", "s", "--label", evil("k=v"))
	run(events.String(), "append", "s")
	first := regexp.MustCompile(`p\d+-\d+`).FindString(run("", "assemble", "s", "--explain"))
	run("", "record", "s", "--projection", first, "--model", evil("model"), "--stop-reason", evil("stop"), "--input-tokens", "100")
	for _, command := range []string{
		"log s", "log s --full", "log s -o wide", "show s", "sessions list -o wide", "sessions get s", "projections list s -o wide", "calls s -o wide",
		"summaries s -o wide", "explain s", "explain s hello", "explain s result", "diff s --from " + first + " --to " + first,
		"assemble s --explain", "export s --format markdown", "export s --format html", "verify s", "tokens x",
	} {
		written := run("", strings.Fields(command)...)
		if found := escape.FindString(written); found != "" || strings.Contains(written, "\nFORGED") && !strings.HasSuffix(command, "html") {
			t.Errorf("%s writes %q, or a line that a name begins: %s", command, found, written)
		}
	}
}
