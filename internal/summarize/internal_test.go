package summarize

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize/prompt"
)

// genGroups draws turns of which some are larger than any request.
func genGroups() *rapid.Generator[[]*reduce.Group] {
	gauge := budget.NewGauge(budget.Heuristic{})
	body := rapid.Custom(func(t *rapid.T) string {
		unit := rapid.SampledFrom([]string{"a line of words\n", "日本語", "x", "\n", "a.go:1 \r"}).Draw(t, "unit")
		return strings.Repeat(unit, rapid.SampledFrom([]int{0, 1, 10, 100, 2000}).Draw(t, "times"))
	})
	return rapid.Custom(func(t *rapid.T) []*reduce.Group {
		var events []eventlog.Event
		for i := range rapid.IntRange(0, 12).Draw(t, "turns") {
			calls := []eventlog.Block{eventlog.Text{Text: body.Draw(t, "text")}}
			var results []eventlog.Block
			for k := range rapid.SampledFrom([]int{0, 1, 3, 12}).Draw(t, "calls") {
				id := fmt.Sprintf("c%d.%d", i, k)
				calls = append(calls, eventlog.ToolCall{CallID: id, Name: "tool", Arguments: "{}"})
				results = append(results, eventlog.ToolResult{CallID: id, Content: []eventlog.Block{eventlog.Text{Text: body.Draw(t, "body")}}})
			}
			events = append(events, logtest.Message(fmt.Sprint("a", i), eventlog.RoleAssistant, calls...))
			if results != nil {
				events = append(events, logtest.Message(fmt.Sprint("r", i), eventlog.RoleTool, results...))
			}
		}
		conv := reduce.NewConversation(gauge)
		if len(events) > 0 {
			_, admitted, err := eventlog.Head{}.Admit(events)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range admitted {
				conv.Append(e)
			}
		}
		return conv.Groups()
	})
}

// gauges count in ways that do not add up alike: by byte, by the heuristic, in fours
// rounded up, and more for the whole than for the parts.
var gauges = map[string]func(string) uint64{
	"bytes":     func(s string) uint64 { return uint64(len(s)) },
	"heuristic": budget.NewGauge(budget.Heuristic{}).Text,
	"quarter":   func(s string) uint64 { return uint64(len(s)+3) / 4 },
	"growing": func(s string) uint64 {
		n := uint64(len(s))
		return n + n*n/10_000
	},
}

// TestNoRequestIsTooLarge: every group is in exactly one chunk, in order, and no chunk
// is larger than allowed, prompts, older text and all.
func TestNoRequestIsTooLarge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := genGroups().Draw(t, "groups")
		name := rapid.SampledFrom([]string{"bytes", "heuristic", "quarter", "growing"}).Draw(t, "gauge")
		count := gauges[name]
		system := prompt.Instructions{}.System(500)
		fixed := 2*budget.MessageOverhead + count(system) + count(prompt.Frame())
		limit := fixed + rapid.SampledFrom([]uint64{0, 511, 512, 513, 1000, 5000, 100_000}).Draw(t, "room")
		older := strings.Repeat("an older line\n", rapid.SampledFrom([]int{0, 1, 20, 5000}).Draw(t, "older"))
		reminder := "remember " + strings.Repeat("this ", rapid.SampledFrom([]int{0, 1, 20, 5000}).Draw(t, "reminder"))
		reminders := []reduce.Reminder{{Reminder: &eventlog.Reminder{Body: "an older one"}}, {Reminder: &eventlog.Reminder{Body: reminder}}}
		parts, err := cut(Material{Groups: groups, Reminders: reminders, Count: count}, system, prompt.Writer{}, limit)
		var tooSmall *InputLimitError
		if limit < fixed+2*leastRoom {
			if !errors.As(err, &tooSmall) || tooSmall.Max != limit || tooSmall.Needed != fixed+2*leastRoom {
				t.Fatalf("a limit of %d with %d fixed: %v", limit, fixed, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		var taken []*reduce.Group
		for first := true; first || parts.more(); first = false {
			k, err := parts.next(older)
			if err != nil {
				t.Fatal(err)
			}
			if n := 2*budget.MessageOverhead + count(system) + count(k.prompt); n > limit {
				t.Fatalf("%d tokens for a limit of %d", n, limit)
			}
			if limit >= fixed+5000 && len(reminder) < 200 && !strings.Contains(k.prompt, "reminder:\n|   "+strings.TrimSpace(reminder)) {
				t.Fatalf("the reminder %q is not in the prompt", reminder)
			}
			if len(k.groups) != len(k.span) || len(k.groups) == 0 && parts.more() {
				t.Fatalf("%d groups and %d texts", len(k.groups), len(k.span))
			}
			for _, text := range k.span {
				if !strings.Contains(k.prompt, text) {
					t.Fatalf("%q is not in the prompt", text)
				}
			}
			taken = append(taken, k.groups...)
		}
		if !slices.Equal(taken, groups) {
			t.Fatalf("took %d of %d groups", len(taken), len(groups))
		}
	})
}

func TestChunksAreFull(t *testing.T) {
	var events []eventlog.Event
	for i := range 10 {
		events = append(events, logtest.Message(fmt.Sprint(i), eventlog.RoleAssistant, eventlog.Text{Text: strings.Repeat("x", 500)}))
	}
	_, admitted, err := eventlog.Head{}.Admit(events)
	if err != nil {
		t.Fatal(err)
	}
	conv := reduce.NewConversation(budget.NewGauge(budget.Heuristic{}))
	for _, e := range admitted {
		conv.Append(e)
	}
	count := gauges["bytes"]
	one := count((prompt.Writer{}).Group(conv.Groups()[0], prompt.Whole))
	fixed := 2*budget.MessageOverhead + count("s") + count(prompt.Frame())
	parts, err := cut(Material{Groups: conv.Groups(), Count: count}, "s", prompt.Writer{}, fixed+4*one+1)
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for parts.more() {
		k, err := parts.next("")
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(k.groups))
	}
	if !slices.Equal(sizes, []int{4, 4, 2}) {
		t.Errorf("chunks of %v groups", sizes)
	}
}

func TestCheckEcho(t *testing.T) {
	said := func(i int) string {
		return fmt.Sprintf("|   in step %d the agent opened file_%d.go and looked at what was there with number %d\n", i, i, i*7)
	}
	var span []string
	for i := range 40 {
		span = append(span, "| [ctx:5.0] assistant:\n"+said(i))
	}
	all := strings.Join(span, "")
	own := strings.Repeat("It was found that parsing loses whatever comes after a final newline, so readers ought to flush. ", 4)
	system := prompt.Instructions{}.System(500)
	for name, c := range map[string]struct {
		text string
		want string // part of the reason; empty if the text is taken
	}{
		"a summary":                 {own, ""},
		"short":                     {said(3), ""},
		"a summary with quotations": {own + said(1) + said(2), ""},
		"the span":                  {all, "the span word for word"},
		"its beginning":             {all[:900], "the span word for word"},
		"its middle":                {all[1001:2000], "the span word for word"},
		"without the marks":         {strings.ReplaceAll(strings.ReplaceAll(all, "|   ", ""), "\n", " "), "the span word for word"},
		"in capitals":               {strings.ToUpper(all), "the span word for word"},
		"most of it":                {own[:190] + all[:1500], "the span word for word"},
		"the instructions":          {system, "the instructions word for word"},
		"half of the instructions":  {own + system[:800], "the instructions word for word"},
		"the frame":                 {strings.Repeat(prompt.Frame(), 3), "the instructions word for word"},
	} {
		err := checkEcho(c.text, system, span)
		var rejected *RejectedError
		if errors.As(err, &rejected) != (c.want != "") || err != nil && !strings.Contains(rejected.Reason, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSharedPercent holds the share against looking at every place.
func TestSharedPercent(t *testing.T) {
	word := rapid.SampledFrom([]string{"a", "b"})
	words := rapid.SliceOfN(word, 1, 60)
	rapid.Check(t, func(t *rapid.T) {
		text, other := words.Draw(t, "text"), words.Draw(t, "other")
		n := 0
		for i := range text {
			if partOfRun(text, other, i) {
				n++
			}
		}
		if got, want := sharedPercent(text, []string{strings.Join(other, " ")}), 100*n/len(text); got != want {
			t.Fatalf("%d%%, want %d%%", got, want)
		}
	})
}

// partOfRun reports whether word i is part of a run that is in other as well.
func partOfRun(text, other []string, i int) bool {
	for at := max(0, i-run+1); at <= i && at+run <= len(text); at++ {
		for k := 0; k+run <= len(other); k++ {
			if slices.Equal(text[at:at+run], other[k:k+run]) {
				return true
			}
		}
	}
	return false
}
