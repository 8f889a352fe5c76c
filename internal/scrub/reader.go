package scrub

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// NewReader returns a reader that scrubs r line by line. It buffers one line.
func (s *Scrubber) NewReader(r io.Reader) io.Reader {
	if s == nil {
		return r
	}
	return &reader{scrubber: s, in: bufio.NewReader(r)}
}

type reader struct {
	scrubber *Scrubber
	in       *bufio.Reader
	line     strings.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	for r.line.Len() == 0 {
		text, err := r.in.ReadString('\n')
		if err != nil && !(errors.Is(err, io.EOF) && text != "") {
			return 0, err
		}
		r.line.Reset(r.scrubber.JSON(text))
	}
	return r.line.Read(p)
}
