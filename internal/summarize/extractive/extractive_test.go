package extractive_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/extractive"
)

var gauge = budget.NewGauge(budget.Heuristic{})

// nothing is the summary of what has no line to quote.
const nothing = "Nothing that the assistant said is quoted here."

// groupsOf admits events and gathers them.
func groupsOf(t interface{ Fatal(...any) }, events ...eventlog.Event) []*reduce.Group {
	_, admitted, err := eventlog.Head{}.Admit(events)
	if err != nil {
		t.Fatal(err)
	}
	conv := reduce.NewConversation(gauge)
	for _, e := range admitted {
		conv.Append(e)
	}
	return conv.Groups()
}

func write(older string, groups []*reduce.Group, limit uint64) string {
	return writeBy(gauge.Text, older, groups, limit)
}

func writeBy(count func(string) uint64, older string, groups []*reduce.Group, limit uint64) string {
	out, err := extractive.Backend{}.Summarize(context.Background(), summarize.Request{
		Older: older, Groups: groups, MaxOutputTokens: limit, Count: count,
	})
	if err != nil {
		panic(err)
	}
	return out.Text
}

func calls(id, arguments string) eventlog.Event {
	return logtest.Message("call "+id, eventlog.RoleAssistant, eventlog.ToolCall{CallID: id, Name: "run", Arguments: arguments})
}

func answers(id, body string, failed bool) eventlog.Event {
	return logtest.Message("answer "+id, eventlog.RoleTool, eventlog.ToolResult{CallID: id, IsError: failed, Content: []eventlog.Block{eventlog.Text{Text: body}}})
}

func says(text string) eventlog.Event {
	return logtest.Message(text, eventlog.RoleAssistant, eventlog.Text{Text: text})
}

// work is a session in which one file is worked on.
func work(t *testing.T) []*reduce.Group {
	filler := strings.Repeat("and so the words go on and on, without a name in them, and say little.\n", 60)
	return groupsOf(t,
		logtest.Say("Mend the parser."),
		says(filler),
		calls("c1", `{"pattern":"parseLine"}`), answers("c1", "src/parser.go:42:	return parseLine(last)\n", false),
		says("I look for who drops it: parseLine, or the loop around it.\n"+filler),
		calls("c2", `{"run":"TestParseLine"}`), answers("c2", "--- FAIL: TestParseLine\n", true),
		says("The last line was dropped. It is kept now."),
	)
}

// TestSummaryOfWork: what the assistant said of the names that it worked with, and how a piece
// of work ended, take a third of the limit. The record around the summary has the rest.
func TestSummaryOfWork(t *testing.T) {
	got := write("", work(t), 400)
	for _, want := range []string{
		"ctx:5.0 said\nI look for who drops it: parseLine, or the loop around it.\n",
		"ctx:8.0 said\nThe last line was dropped. It is kept now.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	for _, gone := range []string{"Mend the parser", "src/parser.go:42", "TestParseLine", "pattern"} {
		if strings.Contains(got, gone) {
			t.Errorf("quotes what others quote, %q:\n%s", gone, got)
		}
	}
	if n := gauge.Text(got); n > 400/3 {
		t.Errorf("%d tokens for a limit of 400", n)
	}
	// Where room is short, how the work ended goes before what was said on the way.
	if tight := write("", work(t), 80); tight != "ctx:8.0 said\nThe last line was dropped. It is kept now." {
		t.Errorf("within 80 tokens:\n%s", tight)
	}
}

func TestOlderTextCompetes(t *testing.T) {
	for name, c := range map[string]struct {
		older string
		limit uint64
		want  []string
		gone  []string
	}{
		"its own":              {"ctx:1.0 said\nI begin with old/file_name.go.", 2000, []string{"ctx:1.0 said\nI begin with old/file_name.go.\nctx:2.0"}, nil},
		"another's":            {"# What was done\nThe user wants tabs.", 2000, []string{"# What was done\nThe user wants tabs.\nctx:"}, nil},
		"nothing":              {nothing, 2000, nil, []string{"Nothing that"}},
		"where room is short":  {"ctx:1.0 said\nI begin with old/file_name.go.", 80, []string{"kept now"}, []string{"old/file_name.go"}},
		"a heading at the end": {"ctx:1.0 said\nI begin with old/file_name.go.\nctx:1.1 said", 2000, []string{"old/file_name.go.\nctx:2.0"}, []string{"ctx:1.1"}},
		"calls and results": {
			"ctx:1.0\nold/file_name.go:7: here\nctx:1.1 failed\nno such file old/other.go\nctx:1.2 said\nThat was old.\nctx:1.3 called with\n{\"path\":\"old/third.go\"}", 2000,
			[]string{"ctx:1.2 said\nThat was old.\nctx:2.0"}, []string{"old/"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := write(c.older, work(t), c.limit)
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing in\n%s", want, got)
				}
			}
			for _, gone := range c.gone {
				if strings.Contains(got, gone) {
					t.Errorf("%q is still in\n%s", gone, got)
				}
			}
		})
	}
}

func TestNothingToQuote(t *testing.T) {
	if got := write("", groupsOf(t, logtest.Say("Hello there.")), 100); got != nothing {
		t.Errorf("%q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (extractive.Backend{}).Summarize(ctx, summarize.Request{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// genBody draws texts that make trouble: pointers that are alone, long lines, escapes,
// NUL, and names.
func genBody(more ...string) *rapid.Generator[string] {
	part := rapid.SampledFrom(append(more, []string{
		"src/log.go:12: func Append(", "ctx:3.0", "ctx:3.0 failed", "\n", "\n", "\n\n", `\n`, "\r\n", " ", "prose and more of it ",
		"日本語のテキスト", "\x00", "id_1234567", strings.Repeat("wide_name ", 70), strings.Repeat("x", 900), strings.Repeat("日", 300), "\t",
	}...))
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(part, 0, 24).Draw(t, "parts"), "")
	})
}

func genGroups(t *rapid.T) []*reduce.Group {
	events := []eventlog.Event{logtest.Say("start")}
	for i := range rapid.IntRange(0, 6).Draw(t, "turns") {
		id := fmt.Sprint("c", i)
		if rapid.Bool().Draw(t, "says") {
			events = append(events, logtest.Message("say "+id, eventlog.RoleAssistant, eventlog.Text{Text: genBody().Draw(t, "said")}))
			continue
		}
		events = append(events, calls(id, genBody("\xff").Draw(t, "arguments")))
		if rapid.IntRange(0, 5).Draw(t, "answered") > 0 {
			events = append(events, answers(id, genBody().Draw(t, "body"), rapid.Bool().Draw(t, "failed")))
		}
	}
	return groupsOf(t, events...)
}

// growing counts more for the whole than for the parts.
func growing(s string) uint64 {
	n := uint64(len(s))
	return n/4 + n*n/4000
}

// TestAlways: whatever the span, a summary is within its limit, the same each time,
// and made of headings and of what is in the blocks that they name, in order.
func TestAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := genGroups(t)
		cut := rapid.IntRange(0, len(groups)).Draw(t, "cut")
		limit := rapid.Uint64Range(8, 800).Draw(t, "limit")
		count := gauge.Text
		if rapid.Bool().Draw(t, "growing") {
			count = growing
		}
		older := writeBy(count, "", groups[:cut], limit)
		got := writeBy(count, older, groups[cut:], limit)
		if again := writeBy(count, older, groups[cut:], limit); again != got {
			t.Fatalf("not the same again:\n%q\n%q", got, again)
		}
		if n := count(got); n > limit && got != nothing {
			t.Fatalf("%d tokens for a limit of %d", n, limit)
		}
		if !utf8.ValidString(got) || strings.ContainsRune(got, 0) || strings.TrimSpace(got) == "" {
			t.Fatalf("%q", got)
		}
		checkQuotes(t, groups, got)
	})
}

func checkQuotes(t *rapid.T, groups []*reduce.Group, text string) {
	if text == nothing {
		return
	}
	blocks := map[string]string{}
	for _, g := range groups {
		for _, m := range g.Messages {
			for _, b := range m.Blocks {
				blocks[reduce.Pointer(b.Seq, b.Index)] = reduce.BodyText(b.Block)
			}
		}
	}
	body, at, last := "", "", eventlog.Seq(0)
	for line := range strings.SplitSeq(text, "\n") {
		pointer, _, _ := strings.Cut(line, " ")
		if seq, _, err := reduce.ParsePointer(pointer); err == nil && (strings.TrimPrefix(line, pointer) == " said") {
			if seq < last || blocks[pointer] == "" {
				t.Fatalf("%q comes after %q, or names nothing:\n%s", line, at, text)
			}
			body, at, last = blocks[pointer], line, seq
			continue
		}
		if body == "" || !strings.Contains(body, strings.TrimRight(line, "\r")) {
			t.Fatalf("%q is not in %s:\n%s", line, at, text)
		}
	}
}

func FuzzOlder(f *testing.F) {
	f.Add("ctx:1.0\nold/file.go\nctx:2.1 failed\nno", uint64(100))
	f.Add("prose\nctx:9.9 said\n\n\nctx:1.0 ", uint64(20))
	f.Fuzz(func(t *testing.T, older string, limit uint64) {
		limit = limit%1000 + 8
		got := write(older, nil, limit)
		if gauge.Text(got) > limit || !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
			t.Fatalf("%d tokens for a limit of %d: %q", gauge.Text(got), limit, got)
		}
		// What was picked once has room again, where its blocks were in order.
		if again := write(got, nil, limit); gauge.Text(again) > limit || again == "" {
			t.Fatalf("%q became %q", got, again)
		}
	})
}

// BenchmarkSummarize picks up to 4,000 tokens from a session of about 100,000 and from ten
// times as many.
func BenchmarkSummarize(b *testing.B) {
	for _, turns := range []int{100, 1000} {
		events := []eventlog.Event{logtest.Say("start")}
		for i := range turns {
			id := fmt.Sprint("c", i)
			var body strings.Builder
			for line := range 60 {
				fmt.Fprintf(&body, "%4d	err := store_%d.Append(ctx, pkg.Name%d) // in src/module%d/file.go\n", line, i%40, line*i%500, i%40)
			}
			events = append(events, calls(id, fmt.Sprintf(`{"path":"src/module%d/file.go"}`, i%40)), answers(id, body.String(), false))
		}
		_, admitted, err := eventlog.Head{}.Admit(events)
		if err != nil {
			b.Fatal(err)
		}
		conv := reduce.NewConversation(gauge)
		for _, e := range admitted {
			conv.Append(e)
		}
		b.Run(fmt.Sprintf("%dk", conv.Tokens()/1000), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				write("", conv.Groups(), 4000)
			}
		})
	}
}
