package cli

import (
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/quote"
)

// inertOn makes what is written unchanged safe for a terminal, where that is what w writes to: content of sessions is
// anybody's. Where it is a file or a pipe, nothing is changed.
func inertOn(w io.Writer) io.Writer {
	if terminalOf(w) == nil {
		return w
	}
	return &inert{w: w}
}

// inert writes characters that are quote.Unseen as JSON escapes them. New lines and tabs stay. JSON means the same after
// that.
type inert struct {
	w    io.Writer
	rest []byte // the beginning of a character, or of the end of a line
}

func (i *inert) Write(p []byte) (int, error) {
	text := slices.Concat(i.rest, p)
	out := make([]byte, 0, len(text))
	for len(text) > 0 && (utf8.FullRune(text) || len(text) >= utf8.UTFMax) {
		r, size := utf8.DecodeRune(text)
		if r == '\r' && len(text) == 1 {
			break // what follows decides
		}
		switch {
		case r == utf8.RuneError && size == 1:
			out = fmt.Appendf(out, `\x%02x`, text[0])
		case r == '\n' || r == '\t':
			out = append(out, byte(r))
		case r == '\r' && len(text) > 1 && text[1] == '\n': // the end of a line, too
		case quote.Unseen(r):
			out = append(out, quote.Escape(string(r))...)
		default:
			out = append(out, text[:size]...)
		}
		text = text[size:]
	}
	i.rest = append([]byte(nil), text...)
	if _, err := i.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}
