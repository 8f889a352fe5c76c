package modelhttp

import (
	"errors"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"
)

func TestDisclosure(t *testing.T) {
	h := hidden{
		secrets: []string{"sk-abcdefghijkl", "", "pw"},
		prompts: []string{"| user: rename the frobnicator in internal/frob.go\n"},
	}
	for in, want := range map[string]string{
		"":                         "",
		"model not found":          "model not found",
		"two\nlines\tand\x00 more": "two lines and more",
		// A stretch of what was sent, whole, in part, dressed or in another case.
		"bad key sk-abcdefghijkl":                         "",
		"bad key sk-abcd":                                 "",
		"bad key ...fghijk":                               "",
		"bad key SK_ABCDEF":                               "",
		"bad key sk-a***l":                                "bad key sk-a***l",
		"wrong pw":                                        "",
		"input was: rename the frobnicator in":            "",
		`input: "rename\nthe\nfrobnicator"`:               "",
		"no user may rename it":                           "no user may rename it",
		strings.Repeat("é", 400):                          strings.Repeat("é", 150) + "…",
		"maximum context length is 2048 tokens, you 4000": "maximum context length is 2048 tokens, you 4000",
	} {
		if got := h.message(in); got != want || !utf8.ValidString(got) {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"context_length_exceeded": "context_length_exceeded", "req_0.1-a": "req_0.1-a", "": "",
		"two words": "", "sk-abcdefghijkl": "", "line\n": "", "é": "", strings.Repeat("a", 65): "",
	} {
		if got := h.code(in); got != want {
			t.Errorf("code %q: %q", in, got)
		}
	}
	address := &url.Error{Op: "Post", URL: "https://user:pw@host?key=sk-abcdefghijkl", Err: syscall.ECONNREFUSED}
	if got := h.cause(address); !errors.Is(got, syscall.ECONNREFUSED) || strings.Contains(got.Error(), "host") {
		t.Errorf("got %v", got)
	}
	for _, quotes := range []string{"sk-abcdefghijkl", strings.Repeat("x", 10<<20)} {
		if got := h.cause(errors.New("malformed " + quotes)); got.Error() != "the connection failed" {
			t.Errorf("got %.300v", got)
		}
	}
}
