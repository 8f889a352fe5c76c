package modelhttp

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An endpoint's error text may repeat what it was sent, whole, in part or escaped. So the text is shown only if no
// stretch of its letters and digits occurs in a secret or a prompt as well.
const (
	maxMessageBytes = 300
	maxCodeBytes    = 64
	// secretStretch and promptStretch are the lengths of such stretches, in letters and digits. Any text shares short
	// ones with a prompt.
	secretStretch = 6
	promptStretch = 16
)

// hidden holds the texts that must not be shown.
type hidden struct{ secrets, prompts []string }

// message returns s on one line and bounded, or empty if it must not be shown.
func (h hidden) message(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if len(s) > maxMessageBytes {
		cut := maxMessageBytes
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	if h.in(s) {
		return ""
	}
	return s
}

// code returns s if it is a word, such as an error code or the id of a request, and
// may be shown; else empty.
func (h hidden) code(s string) string {
	plain := strings.IndexFunc(s, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.", r)
	}) < 0
	if !plain || len(s) > maxCodeBytes || h.in(s) {
		return ""
	}
	return s
}

// cause returns a client's error without the address, which may hold a password. It returns no error text that quotes
// what must not be shown, or an endless header of an answer, which net/http would quote whole.
func (h hidden) cause(err error) error {
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if text := err.Error(); len(text) > maxMessageBytes || h.in(text) {
		return errors.New("the connection failed")
	}
	return err
}

func (h hidden) in(s string) bool {
	s = letters(s)
	for _, secret := range h.secrets {
		if shares(s, letters(secret), secretStretch) {
			return true
		}
	}
	for _, prompt := range h.prompts {
		if shares(s, letters(prompt), promptStretch) {
			return true
		}
	}
	return false
}

// shares reports whether any stretch of n bytes of whole is in s; of a shorter whole, all of it.
func shares(s, whole string, n int) bool {
	if len(whole) == 0 {
		return false
	}
	n = min(n, len(whole))
	for i := 0; i+n <= len(s); i++ {
		if strings.Contains(whole, s[i:i+n]) {
			return true
		}
	}
	return false
}

// escape is how a quoted text writes what is no letter, however often it is quoted.
var escape = regexp.MustCompile(`\\+(u[0-9a-fA-F]{4}|[nrtbf])?`)

// letters drops everything but letters and digits, and the case of those.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, escape.ReplaceAllString(s, " "))
}
