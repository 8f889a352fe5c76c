package transcript

import (
	"bytes"
	"io"
	"strings"
)

// escapes mends escapes that JSON does not have, such as \x1b: they become the characters that they are written with.
// Without this the rest of a document would be lost. A backslash has no other place in JSON.
type escapes struct {
	in   io.Reader
	line int // of the first byte in raw
	// mended are the lines with such escapes that no warning names yet; warned is the newest of all.
	mended []int
	warned int
	// raw was read and may end in a part of an escape; ready is what it became.
	raw, ready []byte
	err        error
}

func (e *escapes) Read(p []byte) (int, error) {
	for len(e.ready) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		var n int
		n, e.err = e.in.Read(p)
		if sound, _ := soundTo(p[:n]); len(e.raw) == 0 && sound == n && n > 0 { // nearly always, without copying
			e.line += bytes.Count(p[:n], []byte("\n"))
			return n, nil
		}
		e.raw = append(e.raw, p[:n]...)
		e.mend()
	}
	n := copy(p, e.ready)
	e.ready = e.ready[n:]
	return n, nil
}

// warnBefore warns of the lines before one: only of whole lines it does not depend on the source's pieces what was seen.
func (e *escapes) warnBefore(line int, warn Warn) {
	for len(e.mended) > 0 && e.mended[0] < line {
		warn(e.mended[0], "an escape that JSON does not have is read as the characters that it is written with")
		e.mended = e.mended[1:]
	}
}

// mend moves raw to ready, up to an escape whose end was not read yet.
func (e *escapes) mend() {
	raw, ready := e.raw, e.ready[:0]
	for {
		n, wrong := soundTo(raw)
		if !wrong && e.err != nil {
			n = len(raw)
		}
		e.line += bytes.Count(raw[:n], []byte("\n"))
		ready, raw = append(ready, raw[:n]...), raw[n:]
		if !wrong {
			break
		}
		ready, raw = append(ready, `\\`...), raw[1:]
		if e.warned != e.line {
			e.warned, e.mended = e.line, append(e.mended, e.line)
		}
	}
	e.raw, e.ready = append(e.raw[:0], raw...), ready
}

// soundTo returns the length of a text up to an escape that is not whole, or that JSON does not have, which is wrong.
func soundTo(text []byte) (n int, wrong bool) {
	for {
		at := bytes.IndexByte(text[n:], '\\')
		if at < 0 {
			return len(text), false
		}
		n += at
		size, whole := escape(text[n:])
		if size == 0 {
			return n, whole
		}
		n += size
	}
}

// escape returns the length of the escape with which a text begins, or 0 if JSON has no such; whole is false where more of
// the text is needed to know.
func escape(text []byte) (size int, whole bool) {
	switch {
	case len(text) < 2:
		return 0, false
	case text[1] != 'u' && strings.IndexByte(`"\/bfnrt`, text[1]) >= 0:
		return 2, true
	case text[1] != 'u':
		return 0, true
	}
	for i := 2; i < 6; i++ {
		if i == len(text) {
			return 0, false
		}
		if strings.IndexByte("0123456789abcdefABCDEF", text[i]) < 0 {
			return 0, true
		}
	}
	return 6, true
}
