// Package page writes self-contained HTML pages: they load nothing, run no script, and quoted text cannot
// become markup.
package page

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"strings"
	"unicode"

	"github.com/contextd/contextd/internal/quote"
)

//go:embed page.css
var style string

// Page is a page that is being written. After the first write error nothing more is written.
type Page struct {
	out *bufio.Writer
	err error
}

// Begin writes the head of a page.
func Begin(w io.Writer, title string) *Page {
	p := &Page{out: bufio.NewWriter(w)}
	sum := sha256.Sum256([]byte(style))
	policy := "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
	p.Raw(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="` + policy + `">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>`).Text(title).Raw("</title>\n<style>" + style + "</style>\n</head>\n<body>\n<main>\n")
	return p
}

// End writes the end of the page, and returns the first error.
func (p *Page) End() error {
	p.Raw("</main>\n</body>\n</html>\n")
	if p.err != nil {
		return p.err
	}
	return p.out.Flush()
}

// Raw writes the program's own markup; never text from a session.
func (p *Page) Raw(markup string) *Page {
	if p.err == nil {
		_, p.err = p.out.WriteString(markup)
	}
	return p
}

// Rawf is Raw with numbers, and with texts that Escape returned.
func (p *Page) Rawf(format string, values ...any) *Page { return p.Raw(fmt.Sprintf(format, values...)) }

// Text writes escaped text.
func (p *Page) Text(text string) *Page { return p.Raw(Escape(text)) }

// In writes an element with a text; class may be empty.
func (p *Page) In(tag, class, text string) *Page {
	p.Raw("<" + tag)
	if class != "" {
		p.Raw(` class="` + class + `"`)
	}
	return p.Raw(">").Text(text).Raw("</" + tag + ">")
}

// Escape escapes text for an element or an attribute, after Visible.
func Escape(text string) string {
	return html.EscapeString(Visible(text))
}

// Visible replaces invisible characters with an effect, such as those that change the text's direction, by
// their code points. Line ends and tabs are kept. Invalid UTF-8 becomes U+FFFD.
func Visible(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	if strings.IndexFunc(text, unseen) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unseen(r) {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// unseen reports whether a character is invisible but has an effect. Joiners in scripts and emoji do not count.
func unseen(r rune) bool {
	return r != '\n' && r != '\t' && (quote.Unseen(r) || unicode.Is(unicode.Noncharacter_Code_Point, r))
}
