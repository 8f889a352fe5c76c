package backendtest

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/modelhttp"
	"github.com/contextd/contextd/internal/summarize/modeltest"
)

// Parsers are the parsers of a backend.
type Parsers struct {
	Answer  func([]byte) (summarize.Output, error)
	Failure func([]byte) modelhttp.Failure
	// The expected results of some bodies.
	Answers  []Answer
	Failures []Failure
}

// Answer is the expected result of the body of a success: either the text and the tokens, or a failure whose reason
// contains Fails.
type Answer struct {
	Body      string
	Text      string
	In, Out   uint64
	Fails     string
	Permanent bool
}

// Failure is the expected result of the body of an error.
type Failure struct {
	Body string
	Want modelhttp.Failure
}

// TestParsing tests the parsers with these bodies.
func TestParsing(t *testing.T, p Parsers) {
	for _, c := range p.Answers {
		out, err := p.Answer([]byte(c.Body))
		if c.Fails == "" {
			if err != nil || out.Text != c.Text || out.InputTokens != c.In || out.OutputTokens != c.Out {
				t.Errorf("%s: %+v, %v", c.Body, out, err)
			}
			continue
		}
		wrong := (*modelhttp.AnswerError)(nil)
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Reason, c.Fails) || wrong.Permanent != c.Permanent {
			t.Errorf("%s: %v", c.Body, err)
		}
	}
	for _, c := range p.Failures {
		if got := p.Failure([]byte(c.Body)); got != c.Want {
			t.Errorf("%s: %+v", c.Body, got)
		}
	}
}

// FuzzParsing calls the parsers with arbitrary bodies: the result is a text or a reason, and everything in it is
// UTF-8.
func FuzzParsing(f *testing.F, p Parsers) {
	p.seed(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		if got := p.Failure(body); !utf8.ValidString(got.Message) || !utf8.ValidString(got.Code) {
			t.Fatalf("%+v", got)
		}
		out, err := p.Answer(body)
		if err != nil {
			if wrong := (*modelhttp.AnswerError)(nil); !errors.As(err, &wrong) || wrong.Reason == "" || out.Text != "" {
				t.Fatalf("%q, %v", out.Text, err)
			}
			return
		}
		if out.Text == "" || out.Text != strings.TrimSpace(out.Text) || !utf8.ValidString(out.Text) {
			t.Fatalf("wrote %q", out.Text)
		}
	})
}

// seed adds bodies of real servers and imitations of broken ones.
func (p Parsers) seed(f *testing.F) {
	all, err := modeltest.Exchanges()
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range all {
		f.Add([]byte(e.Response.Body))
		f.Add([]byte(e.Response.Body[:len(e.Response.Body)/2]))
	}
	for _, body := range []string{"", "null", "[]", "\"\"", "{}", "<html>", "\xff", strings.Repeat("[", 20_000)} {
		f.Add([]byte(body))
	}
	for _, c := range p.Answers {
		f.Add([]byte(c.Body))
	}
	for _, c := range p.Failures {
		f.Add([]byte(c.Body))
	}
}
