package page_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/cmd/contextd/internal/page"
)

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"a < b && \"c\"":                "a &lt; b &amp;&amp; &#34;c&#34;",
		"tab\tand\r\nline":              "tab\tand\nline",
		"\x1b[31mred\x00":               "⟨U+001B⟩[31mred⟨U+0000⟩",
		"user\u202Egpj.exe":             "user⟨U+202E⟩gpj.exe",
		"\u2066isolate\u2069 \u200Fx":   "⟨U+2066⟩isolate⟨U+2069⟩ ⟨U+200F⟩x",
		"\xff\xfe":                      "\uFFFD",
		"tag \U000E0041":                "tag ⟨U+E0041⟩",
		"zero\u200Bwidth\u2060":         "zero⟨U+200B⟩width⟨U+2060⟩",
		"\u05E9\u05DC\u05D5\u05DD 你好 é": "\u05E9\u05DC\u05D5\u05DD 你好 é",
		"👩\u200D💻":                      "👩\u200D💻",
	} {
		if got := page.Escape(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

var entity = regexp.MustCompile(`&(amp|lt|gt|#34|#39);`)

// TestTextsStayTexts: whatever a text contains, it stays text in an element and in an attribute.
func TestTextsStayTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("<>&\"'`\x00\x1b\u202e\u2066")))).Draw(t, "text")
		got := page.Escape(text)
		if rest := entity.ReplaceAllString(got, ""); strings.ContainsAny(rest, "<>\"'&\x00\x1b\u202e\u2066") {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

func TestPageLoadsNothing(t *testing.T) {
	var b strings.Builder
	p := page.Begin(&b, "</title><script>alert(1)</script>")
	p.In("p", "soft", "<b>").Rawf("<i>%d</i>", 1)
	if err := p.End(); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	for _, wrong := range []string{"<script", "<link", "<iframe", "http://", "https://", "url(", "@import", " on"} {
		if at := strings.Index(got, wrong); at >= 0 && !strings.HasPrefix(got[at:], " on ") {
			t.Errorf("the page has %q: %q", wrong, got[at:min(at+60, len(got))])
		}
	}
	for _, want := range []string{`default-src 'none'`, "<p class=\"soft\">&lt;b&gt;</p><i>1</i>", "prefers-color-scheme: dark"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestPageReportsItsWriter(t *testing.T) {
	if err := page.Begin(full{}, "x").Raw(strings.Repeat("x", 1<<16)).End(); err == nil {
		t.Error("nothing is reported")
	}
}
