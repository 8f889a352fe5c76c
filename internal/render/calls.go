package render

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

const (
	// mappedPrefix begins the call ids that replace others.
	mappedPrefix = "ctx_"
	mappedDigits = 24
	// longestCallID is the shortest of the providers' limits, which is that of OpenAI's
	// Chat Completions.
	longestCallID = 40
)

// WireCallID is the id that a tool call and its result have in the providers'
// formats. An id that every provider takes (letters, digits, "_" and "-", at most 40
// of them) stays; any other gives way to "ctx_" and 24 hex digits of its SHA-256.
// The number distinguishes calls that have one id: the first, 0, may keep it.
func WireCallID(id string, number uint32) string {
	if number == 0 && plainCallID(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id + "\x00" + strconv.FormatUint(uint64(number), 10)))
	return mappedPrefix + hex.EncodeToString(sum[:])[:mappedDigits]
}

// MappedCallID reports whether an id may replace another.
func MappedCallID(id string) bool {
	return len(id) == len(mappedPrefix)+mappedDigits && strings.HasPrefix(id, mappedPrefix) &&
		strings.Trim(id[len(mappedPrefix):], "0123456789abcdef") == ""
}

func plainCallID(id string) bool {
	return id != "" && len(id) <= longestCallID && allOf(id, wordByte)
}

// allOf reports whether every byte of s is taken.
func allOf(s string, taken func(i int, c byte) bool) bool {
	for i := range len(s) {
		if !taken(i, s[i]) {
			return false
		}
	}
	return true
}

// nameDigits is how much of its hash a changed name ends with, so that two names that
// differ only in what a provider does not take stay two.
const nameDigits = 8

// wireName is a tool's name where a provider takes only some bytes, at most so many of
// them: the name itself, or else with "_" for what is not taken, cut, and "_" and digits
// of its SHA-256 after it.
func wireName(name string, longest int, taken func(i int, c byte) bool) string {
	if name != "" && len(name) <= longest && allOf(name, taken) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	out := []byte(name[:min(len(name), longest-nameDigits-1)])
	for i, c := range out {
		if !taken(i, c) {
			out[i] = '_'
		}
	}
	return string(out) + "_" + hex.EncodeToString(sum[:])[:nameDigits]
}

// wordByte reports whether c is a letter, a digit, "_" or "-".
func wordByte(_ int, c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// arguments appends a call's arguments where a format takes a JSON object alone: whatever is
// no object, as when a model broke off, and what the provider cannot read is the text in
// {"raw_arguments":"…"}. No arguments are an empty object.
func (c *content) arguments(dst []byte, i int, arguments string, by decoder) []byte {
	what := "arguments that are no object"
	switch {
	case arguments == "":
		return append(dst, '{', '}')
	case !eventlog.IsJSONObject(arguments):
	case !by.reads(arguments):
		what = "arguments that the provider cannot read"
	default:
		whole, changed := wholePairs(arguments)
		if changed {
			c.converted(i, LeftOut, "half of a surrogate pair")
		}
		return appendRaw(dst, whole)
	}
	c.converted(i, Wrapped, what)
	dst = append(dst, `{"`+eventlog.WrappedArguments+`":`...)
	return append(appendString(dst, arguments), '}')
}
