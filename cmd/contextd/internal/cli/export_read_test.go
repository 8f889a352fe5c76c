package cli

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/cmd/contextd/internal/page"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestFencesHoldTheirTexts: a fence ends only at its own end, whatever text it holds, and the text can be
// read back.
func TestFencesHoldTheirTexts(t *testing.T) {
	letters := rapid.StringOf(rapid.SampledFrom([]rune("ab`~ \n\t\r#<\u2028\u202e")))
	rapid.Check(t, func(t *rapid.T) {
		text := letters.Draw(t, "text")
		lines := strings.Split(fenced(text, "text"), "\n")
		fence := strings.TrimSuffix(lines[0], "text")
		if strings.Trim(fence, "`") != "" || len(fence) < 3 {
			t.Fatalf("the fence is %q", lines[0])
		}
		for i, line := range lines[1:] {
			// CommonMark: a closing fence has at least as many backquotes as the opening one, and an indent
			// of at most three.
			run := strings.TrimRight(strings.TrimLeft(line, " "), " \t")
			closes := len(run) >= len(fence) && strings.Trim(run, "`") == ""
			if last := i == len(lines)-2; closes != last {
				t.Fatalf("line %d of %q: closes is %t", i+1, lines, closes)
			}
		}
		inside := strings.Join(lines[1:len(lines)-1], "\n")
		if want := strings.TrimSuffix(page.Visible(text), "\n"); inside != want {
			t.Fatalf("%q holds %q, want %q", lines, inside, want)
		}
	})
}

func TestCodeSpansAreOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"plain":             "`plain`",
		"two\nlines # *x*":  "`two lines # *x*`",
		"a `b` c":           "``a `b` c``",
		"`x":                "`` `x ``",
		"":                  "-",
		"![x](http://a/b)":  "`![x](http://a/b)`",
		"a\u202Eb\x1b[2J\n": "`a⟨U+202E⟩b⟨U+001B⟩[2J`",
	} {
		if got := codeSpan(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestPartsWithoutNames: a part says what it is although its event does not name it.
func TestPartsWithoutNames(t *testing.T) {
	for _, c := range []struct {
		block *contextdv1.Block
		want  string
	}{
		{&contextdv1.Block{Kind: &contextdv1.Block_ToolResult{ToolResult: &contextdv1.ToolResult{}}}, "result, empty"},
		{&contextdv1.Block{Kind: &contextdv1.Block_ToolResult{ToolResult: &contextdv1.ToolResult{ToolName: "ls"}}}, "result of ls, empty"},
		{&contextdv1.Block{Kind: &contextdv1.Block_Media{Media: &contextdv1.Media{Uri: "x"}}}, "media, 0 bytes"},
	} {
		if got := readParts([]*contextdv1.Block{c.block})[0].label; got != c.want {
			t.Errorf("%v: %q, want %q", c.block, got, c.want)
		}
	}
}

func textBlock(text string) *contextdv1.Block {
	return &contextdv1.Block{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: text}}}
}

// hostileEvent has hostile texts in each kind of block, and pictures.
func hostileEvent() *contextdv1.Event {
	media := func(mime string) *contextdv1.Block {
		return &contextdv1.Block{Kind: &contextdv1.Block_Media{Media: &contextdv1.Media{MimeType: mime, Data: []byte("x\">"), Uri: hostile}}}
	}
	return &contextdv1.Event{Seq: 1, Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{
		Role: contextdv1.Role_ROLE_ASSISTANT, Model: hostile, Blocks: []*contextdv1.Block{
			textBlock(hostile),
			{Kind: &contextdv1.Block_Thinking{Thinking: &contextdv1.Thinking{Text: hostile}}},
			{Kind: &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{Name: hostile, ArgumentsJson: []byte(hostile)}}},
			{Kind: &contextdv1.Block_ToolResult{ToolResult: &contextdv1.ToolResult{ToolName: hostile, Content: []*contextdv1.Block{textBlock(strings.Repeat(hostile+"\n", 30)), media("image/png")}}}},
			{Kind: &contextdv1.Block_Provider{Provider: &contextdv1.ProviderBlock{Provider: hostile, Json: []byte(hostile)}}},
			media("image/svg+xml"), media("text/html\"><script>"),
		},
	}}}
}

func TestExportedPagesAreSafe(t *testing.T) {
	var b strings.Builder
	out := newReader(formatHTML, &b)
	out.begin(hostile, [][2]string{{"session", hostile}})
	out.entry(eventEntry(hostileEvent()))
	if err := out.end(); err != nil {
		t.Fatal(err)
	}
	nothingRuns(t, b.String())
	tags, _ := elements(t, b.String())
	images := 0
	for _, tag := range tags {
		if tag == "img" {
			images++
		}
	}
	if images != 1 || !strings.Contains(b.String(), `src="data:image/png;base64,eCI+"`) {
		t.Errorf("%d images, want the one that is a picture", images)
	}
	if !slices.Contains(tags, "details") {
		t.Error("a long result is not folded")
	}
}

func TestExportedMarkdownIsSafe(t *testing.T) {
	var b strings.Builder
	out := newReader(formatMarkdown, &b)
	out.begin(hostile, [][2]string{{"session", hostile}})
	out.entry(eventEntry(hostileEvent()))
	if err := out.end(); err != nil {
		t.Fatal(err)
	}
	fence := ""
	for line := range strings.SplitSeq(b.String(), "\n") {
		ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence != "" && line == fence:
			fence = ""
		case fence == "" && len(ticks) >= 3 && !strings.Contains(line[len(ticks):], "`"):
			fence = ticks
		case fence == "" && strings.Contains(line, "<") && !strings.Contains(line, "`"):
			t.Errorf("markup outside of a fence and a span: %q", line)
		}
	}
	if strings.ContainsAny(b.String(), "\x1b\u202E") {
		t.Error("the page has a control character")
	}
}
