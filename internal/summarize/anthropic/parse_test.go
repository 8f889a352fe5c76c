package anthropic

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/summarize/modelhttp"
	"github.com/contextd/contextd/internal/summarize/modeltest"
)

// seeds are bodies of real servers and what stands in for broken ones.
func seeds(f *testing.F) {
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
	for _, c := range answers {
		f.Add([]byte(c.body))
	}
	for _, c := range failures {
		f.Add([]byte(c.body))
	}
}

func FuzzParseAnswer(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		out, err := parseAnswer(body)
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

func FuzzParseFailure(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		got := parseFailure(body)
		if !utf8.ValidString(got.Message) || !utf8.ValidString(got.Code) {
			t.Fatalf("%+v", got)
		}
	})
}

func TestParseAnswer(t *testing.T) {
	for _, c := range answers {
		out, err := parseAnswer([]byte(c.body))
		if c.fails == "" {
			if err != nil || out.Text != c.text || out.InputTokens != c.in || out.OutputTokens != c.out {
				t.Errorf("%s: %+v, %v", c.body, out, err)
			}
			continue
		}
		wrong := (*modelhttp.AnswerError)(nil)
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Reason, c.fails) || wrong.Permanent != c.permanent {
			t.Errorf("%s: %v", c.body, err)
		}
	}
}

func TestParseFailure(t *testing.T) {
	for _, c := range failures {
		if got := parseFailure([]byte(c.body)); got != c.want {
			t.Errorf("%s: %+v", c.body, got)
		}
	}
}

type parsed struct {
	body      string
	text      string
	in, out   uint64
	fails     string
	permanent bool
}

type failed struct {
	body string
	want modelhttp.Failure
}
