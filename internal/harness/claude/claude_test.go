package claude_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/harness/claude"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

func read(t *testing.T, lines ...string) transcript.Transcript {
	t.Helper()
	tr, err := claude.Harness.Read(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// user and assistant return a line; extra has further members of the record.
func user(uuid, content, extra string) string {
	return fmt.Sprintf(`{"type":"user","uuid":%q,"timestamp":"2026-03-01T10:00:00Z","message":{"role":"user","content":%s}%s}`, uuid, content, extra)
}

func assistant(uuid, id, content, extra string) string {
	return fmt.Sprintf(`{"type":"assistant","uuid":%q,"message":{"role":"assistant","id":%q,"model":"m","content":[%s]}%s}`, uuid, id, content, extra)
}

func boundary(uuid, trigger string) string {
	return fmt.Sprintf(`{"type":"system","subtype":"compact_boundary","uuid":%q,"compactMetadata":{"trigger":%q,"preTokens":7}}`, uuid, trigger)
}

const (
	isSummary = `,"isCompactSummary":true`
	sidechain = `,"isSidechain":true`
	hello     = `{"type":"text","text":"hello"}`
)

func compactions(tr transcript.Transcript) []string {
	var found []string
	for _, e := range tr.Sessions[0].Events {
		if c, ok := e.Body.(*eventlog.Compaction); ok {
			found = append(found, fmt.Sprintf("%s %d %q %s", e.ID, c.Trigger, c.Summary, c.NativeJSON))
		}
	}
	return found
}

func TestCompaction(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		want  []string
	}{
		{
			"automatic", []string{user("u", `"hi"`, ""), boundary("c", "auto"), user("s", `"sum"`, isSummary)},
			[]string{`c 2 "sum" ` + boundary("c", "auto")},
		},
		{
			"by hand, with a summary in blocks", []string{boundary("c", "manual"), user("s", `[{"type":"text","text":"a"},{"type":"text","text":"b"}]`, isSummary)},
			[]string{`c 1 "a\nb" ` + boundary("c", "manual")},
		},
		{
			"a boundary without a summary", []string{boundary("c", "x"), user("u", `"hi"`, "")},
			[]string{`c 0 "" ` + boundary("c", "x")},
		},
		{
			"two boundaries, the second at the end", []string{boundary("c", "auto"), boundary("d", "auto")},
			[]string{`c 2 "" ` + boundary("c", "auto"), `d 2 "" ` + boundary("d", "auto")},
		},
		{
			"a summary without a boundary", []string{user("s", `"sum"`, isSummary)},
			[]string{`s 0 "sum" ` + user("s", `"sum"`, isSummary)},
		},
		{
			"bookkeeping between boundary and summary", []string{boundary("c", "auto"), `{"type":"file-history-snapshot"}`, user("s", `"sum"`, isSummary)},
			[]string{`c 2 "sum" ` + boundary("c", "auto")},
		},
		{
			"a subagent between boundary and summary", []string{user("u", `"hi"`, ""), boundary("c", "auto"), user("x", `"hi"`, sidechain), user("s", `"sum"`, isSummary)},
			[]string{`c 2 "sum" ` + boundary("c", "auto")},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := read(t, tt.lines...)
			if diff := cmp.Diff(tt.want, compactions(tr)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tr.Compactions != len(tt.want) {
				t.Errorf("counted %d compactions", tr.Compactions)
			}
			for _, e := range tr.Sessions[0].Events {
				if m, ok := e.Body.(*eventlog.Message); ok && e.ID == "s" {
					t.Errorf("the summary is a message too: %v", m)
				}
			}
		})
	}
}

func TestSidechains(t *testing.T) {
	task := func(uuid, call, prompt string) string {
		return assistant(uuid, "g"+uuid, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"Task","input":{"prompt":%q}}`, call, prompt), "")
	}
	tests := []struct {
		name  string
		lines []string
		want  []string // suffix, parent call and ids of the events
	}{
		{
			"by the parent, interleaved, with the prompt of the call",
			[]string{
				user("u", `"go"`, ""), task("t1", "c1", "one"), task("t2", "c2", "two"),
				user("a1", `"one"`, sidechain+`,"parentUuid":null`), user("b1", `"two"`, sidechain),
				assistant("a2", "x", hello, sidechain+`,"parentUuid":"a1"`), assistant("b2", "y", hello, sidechain+`,"parentUuid":"b1"`),
				assistant("a3", "z", hello, sidechain+`,"parentUuid":"a2"`),
			},
			[]string{`"" "" u,t1,t2`, `"sidechain-1" "c1" a1,a2,a3`, `"sidechain-2" "c2" b1,b2`},
		},
		{
			"by the agent, with the result that names it",
			[]string{
				task("t1", "c1", "other words"), user("a1", `"one"`, sidechain+`,"agentId":"ag"`), assistant("a2", "x", hello, sidechain+`,"agentId":"ag"`),
				user("r", `[{"type":"tool_result","tool_use_id":"c1","content":"done"}]`, `,"toolUseResult":{"agentId":"ag"}`),
			},
			[]string{`"" "" t1,r`, `"sidechain-1" "c1" a1,a2`},
		},
		{
			"calls and results of a sidechain are its own",
			[]string{
				user("u", `"go"`, ""), user("a", `"x"`, sidechain), assistant("b", "x", `{"type":"tool_use","id":"c1","name":"f","input":{}}`, sidechain+`,"parentUuid":"a"`),
				user("r", `[{"type":"tool_result","tool_use_id":"c1","content":"x"}]`, ""),
			},
			[]string{`"" "" u,r/orphan-result`, `"sidechain-1" "" a,b`},
		},
		{
			"a file of a subagent alone",
			[]string{user("a", `"x"`, sidechain+`,"agentId":"ag"`), assistant("b", "x", hello, sidechain+`,"agentId":"ag"`)},
			[]string{`"" "" a,b`},
		},
		{
			"a subagent's messages in progress records, repeated as they are",
			[]string{
				user("u", `"go"`, ""),
				`{"type":"progress","uuid":"p","parentToolUseID":"c9","data":{"type":"agent_progress","agentId":"ag","message":` + user("a", `"x"`, "") + `}}`,
				`{"type":"progress","uuid":"q","parentToolUseID":"c9","data":{"type":"agent_progress","agentId":"ag","message":` + user("a", `"x"`, "") + `}}`,
				`{"type":"progress","uuid":"r","data":{"type":"bash_progress"}}`,
			},
			[]string{`"" "" u`, `"sidechain-1" "c9" a`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, s := range read(t, tt.lines...).Sessions {
				var ids []string
				for _, e := range s.Events {
					ids = append(ids, e.ID)
				}
				got = append(got, fmt.Sprintf("%q %q %s", s.Suffix, s.ParentCallID, strings.Join(ids, ",")))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestArgumentsAsTheyStand: a tool's input keeps its bytes, except for the whitespace between tokens.
func TestArgumentsAsTheyStand(t *testing.T) {
	for in, want := range map[string]string{
		`{"b":1.0,"a":-0.0,"c":1e400,"d":9007199254740993,"e":123456789012345678901234567890}`: "",
		`{"s":"\u003c\/é\t","k\u0041":"😀","l":"\u2028"}`:                                       "",
		`{"a":1,"a":2}`:            "",
		`{ "x" : [ 1 , "a  b" ] }`: `{"x":[1,"a  b"]}`,
		`[]`:                       "",
		`null`:                     "",
		`"text"`:                   "",
	} {
		if want == "" {
			want = in
		}
		tr := read(t, assistant("a", "g", `{"type":"tool_use","id":"c","name":"f","input":`+in+`}`, ""))
		m, _ := tr.Sessions[0].Events[0].Body.(*eventlog.Message)
		if got := m.Blocks[0].(eventlog.ToolCall).Arguments; got != want {
			t.Errorf("%s became %s", in, got)
		}
	}
}

func TestContent(t *testing.T) {
	tests := []struct {
		name, in string
		want     eventlog.Block
	}{
		{"thinking without text", `{"type":"thinking","thinking":"","signature":"a+/="}`, eventlog.Thinking{Signature: "a+/="}},
		{"redacted thinking", `{"type":"redacted_thinking","data":"a+/="}`, eventlog.Thinking{RedactedData: "a+/="}},
		{"citations", `{"type":"text","text":"x","citations":[{"n":1.0}]}`, eventlog.ProviderBlock{Provider: "anthropic", JSON: `{"type":"text","text":"x","citations":[{"n":1.0}]}`}},
		{"no citations", `{"type":"text","text":"x","citations":null}`, eventlog.Text{Text: "x"}},
		{"image by URL", `{"type":"image","source":{"type":"url","url":"https://x/y"}}`, eventlog.Media{URI: "https://x/y"}},
		{"image that is no base64", `{"type":"image","source":{"type":"base64","media_type":"a/b","data":"!"}}`, eventlog.ProviderBlock{Provider: "anthropic", JSON: `{"type":"image","source":{"type":"base64","media_type":"a/b","data":"!"}}`}},
		{"document with a title", `{"type":"document","title":"t","source":{"type":"base64","media_type":"a/b","data":"AA=="}}`, eventlog.ProviderBlock{Provider: "anthropic", JSON: `{"type":"document","title":"t","source":{"type":"base64","media_type":"a/b","data":"AA=="}}`}},
		{"unknown", `{"type":"new","x": 1}`, eventlog.ProviderBlock{Provider: "anthropic", JSON: `{"type":"new","x":1}`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, _ := read(t, assistant("a", "g", tt.in, "")).Sessions[0].Events[0].Body.(*eventlog.Message)
			if diff := cmp.Diff([]eventlog.Block{tt.want}, m.Blocks); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnreadable: a record of an unexpected shape is kept whole, and the rest is read.
func TestUnreadable(t *testing.T) {
	for _, bad := range []string{
		`{"type":"user","uuid":"b","message":{"role":"user","content":7}}`,
		`{"type":"user","uuid":"b","message":{"role":"user","content":[{"type":5}]}}`,
		`{"type":"user","uuid":5}`,
		`[1]`,
		`{"type":"assistant","uuid":"b","message":{"content":[{"type":"tool_use","id":[],"name":"f"}]}}`,
	} {
		tr := read(t, user("a", `"hi"`, ""), bad, user("c", `"ho"`, ""))
		events := tr.Sessions[0].Events
		c, ok := events[1].Body.(*eventlog.Custom)
		if len(events) != 3 || !ok || c.JSON != bad || c.Type != "claude.unreadable" {
			t.Errorf("%s became %+v", bad, events)
		}
		if len(tr.Warnings) != 1 || tr.Warnings[0].Line != 2 {
			t.Errorf("%s gives the warnings %v", bad, tr.Warnings)
		}
	}
}

func TestNothing(t *testing.T) {
	for _, in := range []string{"", "rubbish", `{"type":"summary","summary":"x","leafUuid":"y"}`} {
		_, err := claude.Harness.Read(strings.NewReader(in))
		var format *transcript.FormatError
		if !errors.As(err, &format) || format.Harness != "claude" {
			t.Errorf("%q gives %v", in, err)
		}
	}
}

// TestPrinted: what Claude Code prints is the same session in a list or an object, one record a line or several
// a line, and from records without ids.
func TestPrinted(t *testing.T) {
	file, err := os.ReadFile("testdata/printed.in.json")
	if err != nil {
		t.Fatal(err)
	}
	var records []jsontext.Value
	if err := transcript.Decode(file, &records); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, r := range records {
		lines = append(lines, transcript.Compact(r))
	}
	want := read(t, string(file))
	for _, form := range []string{strings.Join(lines, "\n"), "[" + strings.Join(lines, ",") + "]", `{"loglines": [` + strings.Join(lines, ",") + "]}"} {
		if !claude.Harness.Detect(transcript.NewProbe([]byte(form))) {
			t.Errorf("not recognised: %.100s", form)
		}
		if diff := cmp.Diff(want.Sessions, read(t, form).Sessions); diff != "" {
			t.Errorf("%.100s (-want +got):\n%s", form, diff)
		}
	}
	anonymous := regexp.MustCompile(`,"uuid":"[^"]*"`).ReplaceAllString(strings.Join(lines, "\n"), "")
	if got := read(t, anonymous); !claude.Harness.Detect(transcript.NewProbe([]byte(anonymous))) || len(got.Sessions) != len(want.Sessions) {
		t.Errorf("without ids there are %d sessions", len(got.Sessions))
	}
}

// TestRecordsOfTheProgram: of the records of newer versions that say nothing to a model, only those of an unknown
// type give a warning.
func TestRecordsOfTheProgram(t *testing.T) {
	for kind, warnings := range map[string]int{"mode": 0, "worktree-state": 0, "atis-latch": 0, "cost-state": 0, "news": 1} {
		tr := read(t, user("u1", `"hi"`, ""), fmt.Sprintf(`{"type":%q,"sessionId":"s"}`, kind))
		if len(tr.Warnings) != warnings || len(tr.Sessions[0].Events) != 2 {
			t.Errorf("%s: %d warnings and %d events", kind, len(tr.Warnings), len(tr.Sessions[0].Events))
		}
	}
}
