package claude_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness/claude"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

func after(parent string) string { return fmt.Sprintf(`,"parentUuid":%q`, parent) }

func calls(ids ...string) string {
	var all []string
	for _, id := range ids {
		all = append(all, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"Read","input":{}}`, id))
	}
	return strings.Join(all, ",")
}

func answers(uuid, parent, call string) string {
	return user(uuid, fmt.Sprintf(`[{"type":"tool_result","tool_use_id":%q,"content":"body"}]`, call), after(parent))
}

func eventIDs(tr transcript.Transcript) string {
	var ids []string
	for _, e := range tr.Sessions[0].Events {
		if c, ok := e.Body.(*eventlog.Custom); !ok || strings.Contains(c.Type, "orphan") {
			ids = append(ids, e.ID)
		}
	}
	return strings.Join(ids, " ")
}

// TestEarlyResults reads files with results before their calls, up to each line, and writes them again.
func TestEarlyResults(t *testing.T) {
	begin := user("u", `"go"`, "")
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"one line early":       {[]string{begin, answers("r", "a", "x"), assistant("a", "m", calls("x"), after("u"))}, "u a r"},
		"two lines early":      {[]string{begin, answers("r", "a", "x"), assistant("b", "m", hello, after("u")), assistant("a", "m", calls("x"), after("b"))}, "u b a r"},
		"behind an attachment": {[]string{begin, answers("r", "a", "x"), `{"type":"attachment","uuid":"t","parentUuid":"r","attachment":{}}`, assistant("a", "m", calls("x"), after("u"))}, "u a r"},
		"twice":                {[]string{begin, answers("r", "a", "x"), answers("r", "a", "x"), assistant("a", "m", calls("x"), after("u"))}, "u a r"},
		"of parallel calls":    {[]string{begin, answers("r", "a", "x"), answers("s", "b", "y"), assistant("a", "m", calls("x"), after("u")), assistant("b", "m", calls("y"), after("a"))}, "u a r b s"},
		"of the next call":     {[]string{begin, answers("s", "r", "y"), answers("r", "a", "x"), assistant("a", "m", calls("x", "y"), after("u"))}, "u a r s"},
		"with the call in a second line of the reply": {[]string{begin, answers("r", "a", "y"), assistant("b", "m", calls("y"), after("u")), assistant("a", "m", calls("x"), after("b"))}, "u b r a"},
		"of no call, by its parent":                   {[]string{begin, answers("r", "a", "x"), assistant("a", "m", hello, after("u")), assistant("b", "n", calls("x"), after("a"))}, "u a r/orphan-result b"},
		"of no call, by its child":                    {[]string{begin, answers("r", "a", "x"), assistant("b", "n", hello, after("r")), assistant("a", "m", calls("x"), after("u"))}, "u r/orphan-result b a"},
		"of no call, by a human":                      {[]string{begin, answers("r", "a", "x"), user("v", `"on"`, after("b")), assistant("a", "m", calls("x"), after("v"))}, "u r/orphan-result v a"},
		"behind a boundary":                           {[]string{begin, answers("r", "a", "x"), boundary("c", "auto"), user("s", `"sum"`, isSummary), user("v", `"on"`, "")}, "u c r/orphan-result v"},
		"of no call, with no parent":                  {[]string{begin, answers("r", "", "x"), assistant("a", "m", calls("x"), after("u"))}, "u r/orphan-result a"},
		"of no call, behind its parent":               {[]string{begin, answers("r", "u", "x"), assistant("a", "m", calls("x"), after("u"))}, "u r/orphan-result a"},
		"of no call yet":                              {[]string{begin, answers("r", "a", "x")}, "u"},
		"a subagent's": {[]string{
			user("u", `"go"`, sidechain+`,"agentId":"g"`), answers("r", "a", "x")[:len(answers("r", "a", "x"))-1] + sidechain + `,"agentId":"g"}`,
			assistant("a", "m", calls("x"), after("u")+sidechain+`,"agentId":"g"`),
		}, "u a r"},
	} {
		t.Run(name, func(t *testing.T) {
			whole := read(t, c.lines...)
			if got := eventIDs(whole); got != c.want {
				t.Fatalf("the events are %q, want %q", got, c.want)
			}
			for n := 1; n < len(c.lines); n++ {
				part := read(t, c.lines[:n]...).Sessions[0].Events
				if last := part[len(part)-1]; n > 1 && last.Body != nil {
					if _, open := last.Body.(*eventlog.Compaction); open {
						part = part[:len(part)-1] // its summary may come
					}
				}
				same := func(a, b eventlog.Event) bool { return a.ID == b.ID && eventlog.Digest(a) == eventlog.Digest(b) }
				if all := whole.Sessions[0].Events; len(part) > len(all) || !slices.EqualFunc(part, all[:len(part)], same) {
					t.Errorf("the first %d lines give other events than the whole file: %+v", n, part)
				}
			}
			var file strings.Builder
			if _, err := claude.Harness.Write(&file, whole, transcript.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
			if got := eventIDs(read(t, strings.Split(file.String(), "\n")...)); got != c.want {
				t.Errorf("written again, the events are %q, want %q", got, c.want)
			}
		})
	}
}
