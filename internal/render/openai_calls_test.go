package render_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// TestManyCallsAtOnce: Chat Completions takes 128 calls in a message. Further ones are in
// messages of their own, each followed by the results, with what these show.
func TestManyCallsAtOnce(t *testing.T) {
	f, _ := render.FormatNamed("openai_chat")
	for _, n := range []int{127, 128, 129, 256, 300} {
		calls := []eventlog.Block{text("I look everywhere.")}
		talk := []*eventlog.Message{say(eventlog.RoleUser, text("go")), modelSaid("gpt-5")}
		for i := range n {
			id := fmt.Sprint("c", i)
			calls = append(calls, makes(id, "read", "{}"))
			talk = append(talk, answers(id, picture))
		}
		talk[1].Blocks = calls
		talk = append(talk, say(eventlog.RoleUser, text("and?")), modelSaid("gpt-5", makes("d", "read", "{}")), answers("d", text("ok")))
		got := rendered(f, openAITalk(talk...))
		for _, v := range rules.Of(f.Name)(linesOf(got)) {
			t.Fatalf("%d: %v", n, v)
		}
		messages := (n + 127) / 128
		all := bytes.Join(linesOf(got), []byte("\n"))
		if found := bytes.Count(all, []byte(`"tool_calls":[`)); found != messages+1 {
			t.Errorf("%d calls are in %d messages", n, found-1)
		}
		if shown := strings.Count(string(all), `"image_url"`); shown != 2*n {
			t.Errorf("%d of %d images are shown", shown/2, n)
		}
		var tokens uint64
		for _, m := range got {
			tokens += m.Tokens
		}
		if tokens != uint64(10*len(talk)) {
			t.Errorf("%d tokens of %d messages", tokens, len(talk))
		}
	}
}

// TestArgumentsThatAreTooLong: OpenAI's models write arguments that its APIs do not take back.
func TestArgumentsThatAreTooLong(t *testing.T) {
	for _, f := range openAIFormats(t) {
		for n, described := range map[int]bool{1 << 20: false, 1<<20 + 1: true} {
			arguments := `{"a":"` + strings.Repeat("é", n-8) + `"}`
			got := rendered(f, openAITalk(say(eventlog.RoleUser, text("go")), modelSaid("gpt-5", makes("c", "write", arguments)), answers("c", text("ok"))))
			for _, v := range rules.Of(f.Name)(linesOf(got)) {
				t.Errorf("%s, %d characters: %v", f.Name, n, v)
			}
			if found := strings.Contains(string(got[1].JSON), `{\"raw_arguments\":\"[arguments, 2097146 bytes; ctx:2.0]\"}`); found != described {
				t.Errorf("%s, %d characters: described is %v: %.300s", f.Name, n, found, got[1].JSON)
			}
			if found := len(got[1].Conversions) == 1 && got[1].Conversions[0].Kind == render.Described; found != described {
				t.Errorf("%s, %d characters: %v", f.Name, n, got[1].Conversions)
			}
		}
	}
}
